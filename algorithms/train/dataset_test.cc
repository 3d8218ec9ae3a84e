#include "paceline/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "paceline/checkpoint.h"
#include "runtime/base/test_directory.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class DatasetTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string refused(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

 private:
  test::TestDirectory directory_;
};

TEST_F(DatasetTest, ATableHasItsTargetApart) {
  const auto sut = csv(write("t.csv", "a,b,c\n1,2,3\n4,5,6\n7,8,9\n"), {.target = "b"});
  EXPECT_EQ(sut.size(), 3);
  const auto chosen = sut.get({2, 0});
  EXPECT_TRUE(torch::equal(chosen.data, torch::tensor({{7., 9.}, {1., 3.}}, torch::kFloat32))) << chosen.data;
  EXPECT_TRUE(torch::equal(chosen.target, torch::tensor({{8.}, {2.}}, torch::kFloat32))) << chosen.target;
  const auto slice = sut.slice(1, 2);
  EXPECT_TRUE(torch::equal(slice.data, torch::tensor({{4., 6.}, {7., 9.}}, torch::kFloat32)));
  EXPECT_TRUE(slice.data.is_contiguous());
}

TEST_F(DatasetTest, ClassesAreWholeNumbers) {
  const auto sut = csv(write("t.csv", "0.5,1\n0.25,0\n"), {.classes = true});
  EXPECT_TRUE(torch::equal(sut.slice(0, 2).target, torch::tensor({1, 0}, torch::kInt64)));
  const auto broken = csv(write("u.csv", "0.5,1\n0.25,0.5\n"), {.classes = true});
  EXPECT_THAT(refused([&] { broken.slice(0, 1); }), HasSubstr("no classes"));
}

TEST_F(DatasetTest, WhatIsNoTableIsSaidWhenItIsRead) {
  const auto sut = csv(write("t.csv", "1,2\n3,x\n"));
  EXPECT_EQ(sut.size(), 2);
  EXPECT_THAT(refused([&] { sut.get({0}); }), HasSubstr("line 2: 'x'"));
  EXPECT_THAT(refused([&] { csv(path("nowhere.csv")).size(); }), HasSubstr("nowhere.csv"));
}

TEST_F(DatasetTest, ArraysOfAFileAreMapped) {
  const auto x = torch::arange(24, torch::kUInt8).view({4, 2, 3});
  const auto y = torch::tensor({3, 1, 2, 0}, torch::kInt64);
  save_tensors({{"data", x}, {"target", y}, {"others", torch::ones({5})}}, path("a.safetensors"));
  const auto sut = safetensors(path("a.safetensors"));
  EXPECT_EQ(sut.size(), 4);
  const auto chosen = sut.get({3, 1});
  EXPECT_TRUE(torch::equal(chosen.data, torch::stack({x[3], x[1]})));
  EXPECT_TRUE(torch::equal(chosen.target, torch::tensor({0, 1}, torch::kInt64)));
  auto slice = sut.slice(1, 2);
  EXPECT_TRUE(torch::equal(slice.data, x.narrow(0, 1, 2)));
  slice.data.fill_(7);  // Ours, not the file's.
  EXPECT_TRUE(torch::equal(sut.slice(1, 2).data, x.narrow(0, 1, 2)));

  EXPECT_THAT(refused([&] { safetensors(path("a.safetensors"), "images").size(); }), HasSubstr("no tensor 'images'"));
  EXPECT_THAT(refused([&] { safetensors(path("a.safetensors"), "others").size(); }), HasSubstr("different numbers"));
  EXPECT_THAT(refused([&] { safetensors(write("b.safetensors", "no such thing")).size(); }),
              HasSubstr("b.safetensors"));
  EXPECT_THAT(refused([&] { safetensors(path("nowhere")).size(); }), HasSubstr("is the path right?"));
}

}  // namespace
}  // namespace paceline
