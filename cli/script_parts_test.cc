#include "cli/script_parts.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using Words = std::vector<std::string>;

TEST(ScriptPartsTest, AScriptSaysWhatElseItIsMadeOf) {
  const auto parts = parts_in(
      "#include <paceline/train.h>\n"
      "  //  paceline: sources=model.cpp,../data.cc includes=include libraries=fftw3f,lib/libx.a\r\n"
      "// paceline: library_folders=/opt/lib sources=more.cpp",
      "/home/me/job");
  ASSERT_TRUE(parts) << parts.error().text;
  EXPECT_EQ(parts->sources, (Words{"/home/me/job/model.cpp", "/home/me/data.cc", "/home/me/job/more.cpp"}));
  EXPECT_EQ(parts->includes, Words{"/home/me/job/include"});
  EXPECT_EQ(parts->libraries, (Words{"fftw3f", "/home/me/job/lib/libx.a"}));
  EXPECT_EQ(parts->library_folders, Words{"/opt/lib"});
}

TEST(ScriptPartsTest, OtherLinesSayNothing) {
  const auto parts = parts_in(
      "// what paceline: sources=a.cpp would mean\n"
      "int x;  // paceline: sources=b.cpp\n"
      "/* paceline: sources=c.cpp */\n"
      "//\n",
      "/x");
  ASSERT_TRUE(parts);
  EXPECT_TRUE(parts->empty());
}

TEST(ScriptPartsTest, AnUnknownWordIsNamed) {
  for (const char* line : {"// paceline: source=a.cpp", "// paceline: a.cpp"}) {
    const auto parts = parts_in(line, "/x");
    ASSERT_FALSE(parts) << line;
    EXPECT_NE(parts.error().text.find(line), std::string::npos) << parts.error().text;
    EXPECT_NE(parts.error().text.find("sources="), std::string::npos);
  }
}

TEST(ScriptPartsTest, TheyComeBackFromJson) {
  const ScriptParts parts{{"/a.cpp"}, {"/include"}, {"/lib"}, {"m", "/libx.a"}};
  EXPECT_EQ(parts_from_json(to_json(parts)), parts);
  EXPECT_TRUE(to_json({}).empty());
  EXPECT_TRUE(parts_from_json(nlohmann::json::parse(R"({"sources": 3, "libraries": [1]})")).empty());
  EXPECT_TRUE(parts_from_json(nullptr).empty());
}

TEST(ScriptPartsTest, MoreComesBehind) {
  ScriptParts parts{{"/a.cpp"}, {}, {}, {"m"}};
  parts.add({{"/b.cpp"}, {"/include"}, {}, {}});
  EXPECT_EQ(parts, (ScriptParts{{"/a.cpp", "/b.cpp"}, {"/include"}, {}, {"m"}}));
}

}  // namespace
}  // namespace paceline::cli
