#include "runtime/http/token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "runtime/base/test_directory.h"

namespace paceline::http {
namespace {

class TokenTest : public ::testing::Test {
 protected:
  test::TestDirectory directory;
  std::filesystem::path file = std::filesystem::path(directory.path) / "token";
};

TEST_F(TokenTest, ItIsMadeOnceAndIsSecret) {
  const auto token = token_in(file);
  ASSERT_TRUE(token) << token.error().text;
  EXPECT_EQ(token->size(), 64u);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(token_in(file).value(), *token);
  std::filesystem::remove(file);
  EXPECT_NE(token_in(file).value(), *token);
}

TEST_F(TokenTest, OneThatOthersCanReadOrThatIsNoneIsRefused) {
  ASSERT_TRUE(token_in(file));
  ::chmod(file.c_str(), 0640);
  EXPECT_FALSE(token_in(file));
  ::chmod(file.c_str(), 0600);
  std::ofstream(file) << "short\n";
  EXPECT_FALSE(token_in(file));
  std::filesystem::remove(file);
  std::filesystem::create_symlink("elsewhere", file);
  EXPECT_FALSE(token_in(file));
}

TEST_F(TokenTest, SecretsAreCompared) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_TRUE(same_secret("", ""));
}

}  // namespace
}  // namespace paceline::http
