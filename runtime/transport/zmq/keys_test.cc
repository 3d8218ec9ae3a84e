#include "runtime/transport/zmq/keys.h"

#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "runtime/base/test_directory.h"

namespace paceline::transport {
namespace {

using test::TestDirectory;

class KeysTest : public testing::Test {
 protected:
  TestDirectory directory;
  std::filesystem::path file = directory.path / "keys";
  ClusterKeys keys = make_cluster_keys().value();

  /// Writes the file as it should be, but with `from` replaced.
  void write_with(const std::string& from, const std::string& to) {
    ASSERT_TRUE(write_keys(file, keys));
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    std::string changed = text.str();
    changed.replace(changed.find(from), from.size(), to);
    std::ofstream(file) << changed;
  }
};

TEST_F(KeysTest, KeysAreFreshEachTime) {
  EXPECT_NE(keys.server.public_key, keys.client.public_key);
  EXPECT_NE(keys, make_cluster_keys().value());
}

TEST_F(KeysTest, FileGivesBackWhatWasWrittenAndIsForUsAlone) {
  ASSERT_TRUE(write_keys(file, keys));
  EXPECT_EQ(read_keys(file).value(), keys);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(KeysTest, WritingAgainReplacesTheFileAndLeavesNoOther) {
  ASSERT_TRUE(write_keys(file, make_cluster_keys().value()));
  ASSERT_TRUE(write_keys(file, keys));
  EXPECT_EQ(read_keys(file).value(), keys);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path), {}), 1);
}

TEST_F(KeysTest, FileThatOthersCanReadIsRefusedWithTheMend) {
  ASSERT_TRUE(write_keys(file, keys));
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  const auto result = read_keys(file);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::invalid);
  EXPECT_NE(result.error().text.find("chmod 600 " + file.string()), std::string::npos);
}

TEST_F(KeysTest, MissingFileIsNotFound) { EXPECT_EQ(read_keys(file).error().kind, ErrorKind::not_found); }

TEST_F(KeysTest, DamagedKeyIsNoticed) {
  write_with(keys.client.secret_key, keys.server.secret_key);
  const auto result = read_keys(file);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text.find("client key is damaged"), std::string::npos);
}

TEST_F(KeysTest, FileOfSomethingElseIsRefused) {
  write_with("paceline-keys 1", "paceline-keys 2");
  EXPECT_EQ(read_keys(file).error().kind, ErrorKind::invalid);
  EXPECT_EQ(read_keys(directory.path).error().kind, ErrorKind::invalid);
}

TEST_F(KeysTest, ServersSecretMayBeMissingWhereNobodyListens) {
  keys.server.secret_key.clear();
  ASSERT_TRUE(write_keys(file, keys));
  EXPECT_EQ(read_keys(file).value(), keys);
}

}  // namespace
}  // namespace paceline::transport
