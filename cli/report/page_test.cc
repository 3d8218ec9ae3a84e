#include "cli/report/page.h"

#include <gtest/gtest.h>

#include <string_view>

#include "runtime/base/json.h"

namespace paceline::report {
namespace {

int count(std::string_view text, std::string_view what) {
  int times = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++times;
  return times;
}

TEST(PageTest, EverythingIsInside) {
  const std::string html = page({{"runs", nlohmann::json::array()}});
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(html.find("Chart.js v3"), std::string::npos);
  EXPECT_NE(html.find("--compute:"), std::string::npos) << "the style";
  EXPECT_NE(html.find("function drawShares"), std::string::npos);
  EXPECT_NE(html.find(R"(id="data">{"runs":[]}</script>)"), std::string::npos);
  for (const char* outside : {"src=\"", "href=\"", "@import", "url(h"}) EXPECT_EQ(count(html, outside), 0) << outside;
}

TEST(PageTest, NoTextOfARunEndsAScriptOrStartsAComment) {
  const std::string plain = page({{"name", "x"}});
  const std::string html = page({{"name", "</script><!--<script><img src=x onerror=alert(1)>{{page.css}}"}});
  EXPECT_EQ(count(html, "</script"), count(plain, "</script"));
  EXPECT_EQ(count(html, "<!--"), count(plain, "<!--"));
  EXPECT_EQ(count(html, "<img"), 0);
  EXPECT_EQ(count(html, "--compute:"), count(plain, "--compute:")) << "what looks like a placeholder is left alone";
  EXPECT_NE(html.find(R"(\u003c/script>)"), std::string::npos);
}

TEST(PageTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_NE(page({{"name", "a\xff"}}).find("{\"name\":\"a\xEF\xBF\xBD\"}"), std::string::npos);
}

}  // namespace
}  // namespace paceline::report
