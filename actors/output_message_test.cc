#include "actors/output_message.h"

#include <gtest/gtest.h>

namespace paceline::actors {
namespace {

TEST(OutputMessageTest, WhatWasPrintedArrivesAsItWas) {
  const Output output{
      "driver/1", NodeId{2}, 300, {{"A pid=1", "/logs/a.log", 7, std::string("\xff\0\n", 3)}, {}}, true};
  const auto received = wire::Received::parse(encode(output).front());
  ASSERT_TRUE(received);
  ASSERT_TRUE(received->root().isOutput());
  EXPECT_EQ(decode(received->root().getOutput()), output);
}

TEST(OutputMessageTest, TheDriversWordArrivesAsItWasSent) {
  for (const bool all : {false, true}) {
    const OutputWanted wanted{"driver/1", NodeId{2}, 300, all, !all};
    const auto received = wire::Received::parse(encode(wanted).front());
    ASSERT_TRUE(received);
    ASSERT_TRUE(received->root().isOutputWanted());
    EXPECT_EQ(decode(received->root().getOutputWanted()), wanted);
  }
}

}  // namespace
}  // namespace paceline::actors
