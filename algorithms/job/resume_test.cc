#include "algorithms/job/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "runtime/base/test_directory.h"

namespace paceline::job {
namespace {

using testing::HasSubstr;

class ResumeTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_.path / name, std::ios::binary) << bytes;
    return directory_.path / name;
  }
  std::string write_safetensors(const std::string& name, const std::string& header) const {
    const std::uint64_t length = header.size();
    return write(name, std::string(reinterpret_cast<const char*>(&length), sizeof length) + header);
  }
  static std::string refused(const std::string& path) {
    const auto checked = check_resume(path);
    return checked ? "nothing" : checked.error().text;
  }
  test::TestDirectory directory_;
};

TEST_F(ResumeTest, ACheckpointOrARunThatHasOneIsGoneOnFrom) {
  EXPECT_TRUE(check_resume(""));
  const auto checkpoint = write_safetensors("a", R"({"__metadata__": {"paceline": "paceline-replica-1"}})");
  EXPECT_TRUE(check_resume(checkpoint)) << refused(checkpoint);
  EXPECT_THAT(refused(directory_.path), HasSubstr("that run has no checkpoint"));
  std::filesystem::rename(checkpoint, directory_.path / "checkpoint.safetensors");
  EXPECT_TRUE(check_resume(directory_.path)) << refused(directory_.path);
}

TEST_F(ResumeTest, AnythingElseIsNot) {
  EXPECT_THAT(refused(directory_.path / "nowhere"), HasSubstr("no such run or file"));
  const auto model = write_safetensors("model", R"({"__metadata__": {"format": "pt"}})");
  EXPECT_EQ(refused(model), "--resume " + model +
                                ": not a checkpoint of this version of Paceline: a model alone is read with "
                                "paceline::load, before me.share");
  for (const auto& bytes : {std::string(), std::string("PK\3\4 of torch.save"), std::string("\x20\0\0\0\0\0\0\0{", 9)})
    EXPECT_THAT(refused(write("odd", bytes)), HasSubstr("not a checkpoint")) << bytes;
  for (const char* header : {"[]", "{", "{}", R"({"__metadata__": 7})", R"({"__metadata__": {"paceline": 1}})"})
    EXPECT_THAT(refused(write_safetensors("odd", header)), HasSubstr("not a checkpoint")) << header;
}

}  // namespace
}  // namespace paceline::job
