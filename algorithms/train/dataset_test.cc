#include "paceline/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "algorithms/train/mapped_file.h"
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

TEST_F(DatasetTest, PartsAreRandomDisjointAndAlwaysTheSame) {
  const auto numbers = torch::arange(10);
  const auto whole = tensors(numbers, numbers);
  const auto numbers_of = [](const Dataset& part) {
    const auto all = part.slice(0, part.size()).data;
    return std::vector<std::int64_t>(all.data_ptr<std::int64_t>(), all.data_ptr<std::int64_t>() + all.numel());
  };
  const auto held_out = numbers_of(whole.part(0, 0.25)), trained = numbers_of(whole.part(0.25, 1));
  EXPECT_EQ(held_out.size(), 3U);
  EXPECT_EQ(trained.size(), 7U);
  EXPECT_NE(held_out, (std::vector<std::int64_t>{0, 1, 2})) << "files are often sorted";
  std::set<std::int64_t> all(held_out.begin(), held_out.end());
  all.insert(trained.begin(), trained.end());
  EXPECT_EQ(all.size(), 10U);
  EXPECT_EQ(numbers_of(whole.part(0.25, 1)), trained);
  EXPECT_EQ(whole.part(0.25, 1).get({6, 0}).target[1].item<std::int64_t>(), trained[0]);
  EXPECT_THROW(whole.part(0.5, 0.5), std::invalid_argument);
  EXPECT_THROW(whole.part(0, 1.5), std::invalid_argument);
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

TEST_F(DatasetTest, AMappedFileThatIsWrittenIsNotReadOn) {
  save_tensors({{"data", torch::zeros({4, 2})}, {"target", torch::zeros({4})}}, path("a.safetensors"));
  const auto sut = safetensors(path("a.safetensors"));
  sut.get({0});
  std::ofstream(path("a.safetensors"), std::ios::trunc) << "short";
  EXPECT_THAT(refused([&] { sut.get({3}); }), HasSubstr("a.safetensors was written while it was used"));
}

TEST_F(DatasetTest, AMappedFileThatIsCutOffWhileItIsReadEndsNothing) {
  const std::int64_t rows = 1 << 16;
  save_tensors({{"data", torch::ones({rows, 16})}, {"target", torch::zeros({rows})}}, path("a.safetensors"));
  auto file = *train::MappedFile::open(path("a.safetensors"));
  const auto sum = [&] {
    std::size_t total = 0;
    for (const std::byte byte : file.bytes()) total += std::to_integer<std::size_t>(byte);
    return total;
  };
  const std::size_t whole = sum();
  std::filesystem::resize_file(path("a.safetensors"), 100'000);
  EXPECT_LT(sum(), whole);  // The rest is gone.
  EXPECT_GT(sum(), 0U);
  EXPECT_FALSE(file.check_unchanged());

  save_tensors({{"data", torch::ones({rows, 16})}, {"target", torch::zeros({rows})}}, path("b.safetensors"));
  const auto sut = safetensors(path("b.safetensors"));
  std::atomic<int> reads{0};
  std::jthread cuts([&] {
    reads.wait(0);
    std::filesystem::resize_file(path("b.safetensors"), 100'000);
  });
  EXPECT_THAT(refused([&] {
                for (;; ++reads, reads.notify_one())
                  ASSERT_EQ(sut.slice(0, rows).data.sum().item<double>(), 16.0 * rows);
              }),
              HasSubstr("b.safetensors was written while it was used"));
}

TEST_F(DatasetTest, ABusErrorOfSomebodyElseEndsTheProcess) {
  save_tensors({{"data", torch::ones({4, 16})}, {"target", torch::zeros({4})}}, path("a.safetensors"));
  const auto ours = train::MappedFile::open(path("a.safetensors"));
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(DatasetTest, TextIsTokensAndThoseThatFollow) {
  const auto sut = tokens(write("t.txt", "abcdefgh"), {.length = 3});
  ASSERT_EQ(sut.size(), 2);
  const auto all = sut.slice(0, 2);
  EXPECT_TRUE(torch::equal(all.data, torch::tensor({'a', 'b', 'c', 'd', 'e', 'f'}, torch::kInt64).view({2, 3})));
  EXPECT_TRUE(torch::equal(all.target, torch::tensor({'b', 'c', 'd', 'e', 'f', 'g'}, torch::kInt64).view({2, 3})));
  const auto wide = tokens(path("t.txt"), {.length = 1, .bytes = 4});
  ASSERT_EQ(wide.size(), 1);
  EXPECT_EQ(wide.get({0}).data.item<std::int64_t>(), 0x64636261);
  EXPECT_EQ(wide.get({0}).target.item<std::int64_t>(), 0x68676665);
  EXPECT_EQ(tokens(write("high", "\xff\xff\x01\x02"), {.length = 1, .bytes = 2}).get({0}).data.item<std::int64_t>(),
            0xffff);

  EXPECT_THAT(refused([&] { tokens(path("t.txt"), {.length = 8}).size(); }), HasSubstr("too few for a sample of 8"));
  EXPECT_THAT(refused([&] { tokens(write("odd", "abc"), {.bytes = 2}).size(); }), HasSubstr("no tokens of 2 bytes"));
  EXPECT_THAT(refused([&] { tokens(write("empty", "")).size(); }), HasSubstr("is empty"));
  EXPECT_THROW(tokens(path("t.txt"), {.bytes = 3}), std::invalid_argument);
}

}  // namespace
}  // namespace paceline
