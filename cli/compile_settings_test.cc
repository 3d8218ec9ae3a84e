#include "cli/compile_settings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paceline::cli {
namespace {

constexpr const char* kSettings =
    R"({"paceline": "0.1.0", "compiler": "g++", "train_compiler": "g++", "flags": ["-O1"], "link_flags": ["-Wl,--wrap=main"],
  "plain": {"includes": ["@PREFIX@/include"], "archives": ["@PREFIX@/lib/libpaceline_actors.a"], "pch": "", "system_includes": [""],
            "defines": ["A"], "options": [""], "libraries": ["/usr/lib/libzmq.so"], "rpaths": [""]},
  "train": {"includes": ["/p"], "archives": ["libpaceline_train.a"], "pch": "/pch", "system_includes": ["/torch"], "defines": [""],
            "options": [""], "libraries": ["libtorch_cpu.so"], "rpaths": ["/torch/lib"]}})";

class CompileSettingsTest : public ::testing::Test {
 protected:
  CompileSettings sut = parse_compile_settings(kSettings, "/opt/p").value();
};

TEST_F(CompileSettingsTest, ThePrefixReplacesItsMark) {
  EXPECT_EQ(sut.plain.includes, std::vector<std::string>{"/opt/p/include"});
  EXPECT_EQ(sut.plain.archives, std::vector<std::string>{"/opt/p/lib/libpaceline_actors.a"});
}

TEST_F(CompileSettingsTest, AnEmptyWordIsNoWord) { EXPECT_TRUE(sut.plain.system_includes.empty()); }

TEST_F(CompileSettingsTest, AMissingFieldIsNamed) {
  const auto settings = parse_compile_settings(R"({"paceline": "0.1.0"})", "");
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().text.find("compiler"), std::string::npos) << settings.error().text;
  EXPECT_FALSE(parse_compile_settings("no json", ""));
}

TEST_F(CompileSettingsTest, OnlyAScriptThatIncludesTorchGetsIt) {
  EXPECT_EQ(kind_of(sut, "#include <paceline.h>\n// #include <paceline/train.h>\n").value(), &sut.plain);
  EXPECT_EQ(kind_of(sut, "// a script\n  #  include <paceline/train.h>\n").value(), &*sut.train);
  EXPECT_EQ(kind_of(sut, "#include \"torch/torch.h\"\n").value(), &*sut.train);
}

TEST_F(CompileSettingsTest, WithoutLibtorchATrainingScriptIsRefused) {
  sut.train.reset();
  const auto kind = kind_of(sut, "#include <paceline/train.h>\n");
  ASSERT_FALSE(kind);
  EXPECT_NE(kind.error().text.find("without libtorch"), std::string::npos);
}

TEST_F(CompileSettingsTest, ThePlainCommandKnowsNoTorch) {
  const std::vector<std::string> expected = {"g++",
                                             "-O1",
                                             "-DA",
                                             "-I/opt/p/include",
                                             "-MMD",
                                             "-MF",
                                             "out.d",
                                             "x.cpp",
                                             "-o",
                                             "out",
                                             "-Wl,--wrap=main",
                                             "-Wl,--start-group",
                                             "/opt/p/lib/libpaceline_actors.a",
                                             "-Wl,--end-group",
                                             "/usr/lib/libzmq.so"};
  EXPECT_EQ(compile_command(sut, sut.plain, "x.cpp", {}, {}, "out"), expected);
}

TEST_F(CompileSettingsTest, TheTrainCommandBeginsWithThePrecompiledHeader) {
  const auto command = compile_command(sut, *sut.train, "x.cpp", {}, {}, "out");
  const auto include = std::find(command.begin(), command.end(), "-include");
  ASSERT_NE(include, command.end());
  EXPECT_EQ(*(include + 1), "/pch/paceline_train.h");
  const auto isystem = std::find(command.begin(), command.end(), "-isystem");
  ASSERT_NE(isystem, command.end());
  EXPECT_EQ(*(isystem + 1), "/torch");
  EXPECT_EQ(command.back(), "-Wl,-rpath,/torch/lib");
}

TEST_F(CompileSettingsTest, FurtherPartsGoWhereTheCompilerTakesThem) {
  const ScriptParts parts{{"/job/more.cpp"}, {"/job/include"}, {"/job/lib"}, {"fftw3f", "/job/libx.a"}};
  const std::vector<std::string> expected = {"g++",
                                             "-O1",
                                             "-DA",
                                             "-I/opt/p/include",
                                             "-I/job/include",
                                             "-MMD",
                                             "-MF",
                                             "out.d",
                                             "x.cpp",
                                             "-o",
                                             "out",
                                             "1.o",
                                             "-L/job/lib",
                                             "-lfftw3f",
                                             "/job/libx.a",
                                             "-Wl,--wrap=main",
                                             "-Wl,--start-group",
                                             "/opt/p/lib/libpaceline_actors.a",
                                             "-Wl,--end-group",
                                             "/usr/lib/libzmq.so",
                                             "-Wl,-rpath,/job/lib"};
  EXPECT_EQ(compile_command(sut, sut.plain, "x.cpp", parts, {"1.o"}, "out"), expected);
  const std::vector<std::string> object = {
      "g++",           "-O1", "-DA", "-I/opt/p/include", "-I/job/include", "-c", "-MMD", "-MF", "1.o.d",
      "/job/more.cpp", "-o",  "1.o"};
  EXPECT_EQ(object_command(sut, sut.plain, "/job/more.cpp", parts, "1.o"), object);
}

}  // namespace
}  // namespace paceline::cli
