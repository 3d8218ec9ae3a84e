#include "algorithms/session/job_terms_wire.h"

#include <capnp/dynamic.h>
#include <gtest/gtest.h>

namespace paceline::session {
namespace {

TEST(JobTermsTest, EachComesThroughAMessage) {
  wire::Message message, again;
  capnp::DynamicStruct::Builder fields = message.root().initJobTerms();
  for (const auto field : fields.getSchema().getFields()) {
    if (field.getType().isText()) {
      fields.set(field, "t");
    } else if (field.getType().isBool()) {
      fields.set(field, true);
    } else {
      fields.set(field, 1 + field.getIndex() % 3);
    }
  }
  const auto came = job_terms(message.root().getJobTerms());
  EXPECT_EQ(came.trace, "t");
  EXPECT_TRUE(came.abandons);
  write(came, again.root().initJobTerms());
  EXPECT_EQ(again.to_frame(), message.to_frame()) << "a field of the message that is not one of JobTerms";
}

}  // namespace
}  // namespace paceline::session
