#include "paceline/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "runtime/base/test_directory.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t width = 3) {
    fc = register_module("fc", torch::nn::Linear(2, width));
    norm = register_module("norm", torch::nn::BatchNorm1d(width));
  }
  torch::nn::Linear fc{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

class CheckpointTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path / name; }
  static std::string refused(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  static bool equal(torch::nn::Module& a, torch::nn::Module& b) {
    for (const auto& item : a.named_parameters())
      if (!torch::equal(item.value(), b.named_parameters()[item.key()])) return false;
    for (const auto& item : a.named_buffers())
      if (!torch::equal(item.value(), b.named_buffers()[item.key()])) return false;
    return true;
  }

 private:
  test::TestDirectory directory_;
};

TEST_F(CheckpointTest, AFileOfTorchSaveIsSaidToBeOne) {
  Net net;
  torch::save(net, path("net.pt"));
  EXPECT_THAT(refused([&] { load(net, path("net.pt")); }),
              testing::AllOf(HasSubstr("net.pt: "), HasSubstr("a file of torch.save"),
                             HasSubstr("safetensors.torch.save_file(net.state_dict()")));
  std::ofstream(path("old.pt"), std::ios::binary) << "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  EXPECT_THAT(refused([&] { load(net, path("old.pt")); }), HasSubstr("a file of torch.save"));
}

TEST_F(CheckpointTest, AModelComesBackBuffersIncluded) {
  Net saved, loaded;
  saved->norm->running_mean.fill_(0.5);
  saved->norm->num_batches_tracked.fill_(7);
  save(saved, path("net.safetensors"));
  const auto result = load(loaded, path("net.safetensors"));
  EXPECT_TRUE(equal(*saved, *loaded));
  EXPECT_THAT(result.missing, IsEmpty());
  EXPECT_THAT(result.unexpected, IsEmpty());
  EXPECT_TRUE(loaded->fc->weight.requires_grad());
}

TEST_F(CheckpointTest, ARunDirectoryStandsForItsCheckpointAndTheJobsOwnTensorsArePassedOver) {
  Net net, loaded;
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& item : net->named_parameters()) tensors.emplace("share1." + item.key(), item.value());
  for (const auto& item : net->named_buffers()) tensors.emplace("share1." + item.key(), item.value());
  tensors.emplace("paceline.optimizer.momentum_buffer.share1.fc.weight", torch::ones({3, 2}));
  tensors.emplace("share0.other", torch::ones({1}));
  std::filesystem::create_directory(path("run"));
  save_tensors(tensors, path("run") + "/checkpoint.safetensors");
  const auto result = load(loaded, path("run"), {.prefix = "share1."});
  EXPECT_TRUE(equal(*net, *loaded));
  EXPECT_THAT(result.unexpected, IsEmpty());
}

TEST_F(CheckpointTest, WhatHasNoPartnerIsNamedOrPassedOver) {
  Net net;
  const auto bias = net->fc->bias.detach().clone();
  std::map<std::string, torch::Tensor> tensors{{"fc.weight", torch::full({3, 2}, 2.0)}, {"head", torch::ones({1})}};
  save_tensors(tensors, path("part.safetensors"));
  const auto text = refused([&] { load(net, path("part.safetensors")); });
  EXPECT_THAT(text,
              HasSubstr("cannot load " + path("part.safetensors") + " into the model: it lacks fc.bias, norm.weight"));
  EXPECT_THAT(text, HasSubstr(" and 1 more; the model has no head (strict = false"));
  EXPECT_FALSE(torch::equal(net->fc->weight, torch::full({3, 2}, 2.0))) << "it was refused: nothing is changed";

  const auto result = load(net, path("part.safetensors"), {.strict = false});
  EXPECT_TRUE(torch::equal(net->fc->weight, torch::full({3, 2}, 2.0)));
  EXPECT_TRUE(torch::equal(net->fc->bias, bias));
  EXPECT_THAT(result.unexpected, ElementsAre("head"));
  EXPECT_EQ(result.missing.size(), 6U);
}

TEST_F(CheckpointTest, OtherShapesAreRefusedEvenIfNotStrict) {
  Net wide(4), net;
  save(wide, path("wide.safetensors"));
  const auto before = net->fc->weight.detach().clone();
  const auto text = refused([&] { load(net, path("wide.safetensors"), {.strict = false}); });
  EXPECT_THAT(text, HasSubstr("fc.weight is [4, 2] there and [3, 2] here"));
  EXPECT_THAT(text, Not(HasSubstr("strict")));
  EXPECT_TRUE(torch::equal(net->fc->weight, before));
}

TEST_F(CheckpointTest, TypesAreConverted) {
  Net net;
  std::map<std::string, torch::Tensor> tensors{{"fc.weight", torch::full({3, 2}, 0.5, torch::kFloat16)},
                                               {"fc.bias", torch::full({3}, 0.25, torch::kFloat64)}};
  save_tensors(tensors, path("half.safetensors"));
  load(net, path("half.safetensors"), {.strict = false});
  EXPECT_TRUE(torch::equal(net->fc->weight, torch::full({3, 2}, 0.5F)));
  EXPECT_TRUE(torch::equal(net->fc->bias, torch::full({3}, 0.25F)));
}

TEST_F(CheckpointTest, TensorsComeBackWithTypesAndMemoryOfTheirOwn) {
  const std::map<std::string, torch::Tensor> tensors{{"a", torch::arange(5)},
                                                     {"b", torch::ones({2, 0})},
                                                     {"c", torch::tensor({true, false})},
                                                     {"d", torch::rand({3, 4}).t()}};
  save_tensors(tensors, path("t.safetensors"));
  const auto loaded = load_tensors(path("t.safetensors"));
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(torch::equal(loaded.at(name), tensor)) << name;
    EXPECT_EQ(loaded.at(name).scalar_type(), tensor.scalar_type());
  }
}

TEST_F(CheckpointTest, BadFilesAreNamed) {
  Net net;
  EXPECT_THAT(refused([&] { load(net, path("none")); }), HasSubstr("cannot read " + path("none") + ": No such file"));
  std::ofstream(path("text")) << "not a checkpoint at all";
  EXPECT_THAT(refused([&] { load(net, path("text")); }), HasSubstr("cannot read " + path("text") + ": safetensors"));
  EXPECT_THAT(refused([&] { save(net, path("no/folder")); }), HasSubstr("cannot write " + path("no/folder")));
  EXPECT_THAT(refused([&] {
                save_tensors({{"z", torch::zeros({2}, torch::kComplexFloat)}}, path("z"));
              }),
              HasSubstr("tensor 'z' cannot be saved"));
  EXPECT_FALSE(std::filesystem::exists(path("z")));
}

}  // namespace
}  // namespace paceline
