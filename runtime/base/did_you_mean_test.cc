#include "runtime/base/did_you_mean.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(DidYouMeanTest, OffersOnlyWhatIsClose) {
  EXPECT_EQ(did_you_mean("wagme", {"allreduce", "wagma"}), "wagma");
  EXPECT_EQ(did_you_mean("al-reduce", {"allreduce", "wagma"}), "allreduce");
  EXPECT_EQ(did_you_mean("foo", {"allreduce", "wagma"}), std::nullopt);
}

}  // namespace
}  // namespace paceline
