#include "algorithms/train/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "paceline/data.h"
#include "runtime/base/test_directory.h"

namespace paceline::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Pixels = std::vector<std::uint8_t>;

class ImageFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path / name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string write_png(const std::string& name, std::uint32_t width, std::uint32_t height, std::uint32_t format,
                        const Pixels& pixels) const {
    write(name, "");
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    png.width = width;
    png.height = height;
    png.format = format;
    EXPECT_TRUE(png_image_write_to_file(&png, path(name).c_str(), 0, pixels.data(), 0, nullptr)) << png.message;
    return path(name);
  }
  std::string write_jpeg(const std::string& name, int width, int height, const Pixels& pixels) const {
    const std::unique_ptr<void, int (*)(tjhandle)> writer(tjInitCompress(), &tjDestroy);
    unsigned char* bytes = nullptr;
    unsigned long size = 0;
    EXPECT_EQ(tjCompress2(writer.get(), pixels.data(), width, 0, height, TJPF_RGB, &bytes, &size, TJSAMP_444, 100, 0),
              0);
    write(name, std::string(reinterpret_cast<const char*>(bytes), size));
    tjFree(bytes);
    return path(name);
  }
  static std::string refused(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

 private:
  test::TestDirectory directory_;
};

TEST_F(ImageFileTest, PngGivesItsPixelsInColourOrGrey) {
  const auto file = write_png("a.png", 2, 1, PNG_FORMAT_RGB, {255, 0, 0, 9, 9, 9});
  const auto coloured = read_image(file, 3);
  ASSERT_TRUE(coloured) << coloured.error().text;
  EXPECT_EQ(coloured->height, 1);
  EXPECT_EQ(coloured->width, 2);
  EXPECT_THAT(coloured->pixels, ElementsAre(255, 0, 0, 9, 9, 9));
  const auto grey = read_image(file, 1);
  ASSERT_TRUE(grey);
  EXPECT_EQ(grey->pixels.size(), 2U);
  EXPECT_EQ(grey->pixels[1], 9);
}

TEST_F(ImageFileTest, WhatIsTransparentIsBlack) {
  const auto image = read_image(write_png("a.png", 2, 1, PNG_FORMAT_RGBA, {200, 100, 50, 255, 200, 100, 50, 0}), 3);
  ASSERT_TRUE(image);
  EXPECT_THAT(image->pixels, ElementsAre(200, 100, 50, 0, 0, 0));
}

TEST_F(ImageFileTest, JpegGivesNearlyItsPixels) {
  const auto image = read_image(write_jpeg("a.jpg", 8, 8, Pixels(192, 120)), 3);
  ASSERT_TRUE(image) << image.error().text;
  EXPECT_EQ(image->height, 8);
  ASSERT_EQ(image->pixels.size(), 192U);
  for (const auto value : image->pixels) EXPECT_NEAR(value, 120, 2);
  EXPECT_EQ(read_image(path("a.jpg"), 1)->pixels.size(), 64U);
}

TEST_F(ImageFileTest, WhatIsNoImageIsNamed) {
  const auto said = [](const Result<Image>& image) { return image ? std::string("read") : image.error().text; };
  EXPECT_THAT(said(read_image(path("none.png"), 3)), HasSubstr("none.png"));
  EXPECT_THAT(said(read_image(write("text.png", "no image"), 3)),
              HasSubstr("text.png cannot be read as an image: it is neither"));
  EXPECT_THAT(said(read_image(write("empty.jpg", ""), 3)), HasSubstr("neither"));
  for (const auto& whole :
       {write_png("a.png", 20, 20, PNG_FORMAT_RGB, Pixels(1200, 7)), write_jpeg("a.jpg", 20, 20, Pixels(1200, 7))}) {
    std::ifstream file(whole, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (std::size_t size = 0; size < std::min<std::size_t>(40, bytes.size()); ++size)
      EXPECT_FALSE(read_image(write("cut", bytes.substr(0, size)), 3)) << whole << " cut to " << size;
  }
}

TEST_F(ImageFileTest, AFolderOfClassFoldersIsADataSet) {
  write_png("set/cats/b.png", 2, 1, PNG_FORMAT_RGB, {255, 0, 0, 0, 0, 255});
  write_png("set/cats/a.PNG", 2, 1, PNG_FORMAT_RGB, {0, 0, 0, 0, 0, 0});
  write_png("set/dogs/c.png", 2, 1, PNG_FORMAT_RGB, {51, 51, 51, 51, 51, 51});
  write("set/dogs/notes.txt", "no picture");
  write("set/readme", "no class");
  const auto sut = images(path("set"));
  ASSERT_EQ(sut.size(), 3);
  const auto all = sut.slice(0, 3);
  EXPECT_EQ(all.data.sizes(), torch::IntArrayRef({3, 3, 1, 2}));
  EXPECT_TRUE(torch::equal(all.target, torch::tensor({0, 0, 1}, torch::kInt64)));
  EXPECT_TRUE(torch::equal(all.data[1], torch::tensor({1., 0., 0., 0., 0., 1.}, torch::kFloat32).view({3, 1, 2})));
  EXPECT_NEAR(all.data[2].mean().item<double>(), 0.2, 1e-6);
  EXPECT_TRUE(torch::equal(sut.get({2, 0}).target, torch::tensor({1, 0}, torch::kInt64)));
  EXPECT_EQ(images(path("set"), {.channels = 1}).get({0}).data.sizes(), torch::IntArrayRef({1, 1, 1, 2}));
}

TEST_F(ImageFileTest, ImagesOfOtherSizesAreScaledIfASizeIsGiven) {
  write_png("set/a/1.png", 2, 2, PNG_FORMAT_RGB, Pixels(12, 51));
  write_png("set/a/2.png", 6, 4, PNG_FORMAT_RGB, Pixels(72, 102));
  EXPECT_THAT(refused([&] { images(path("set")).get({1}); }),
              HasSubstr("2.png is 6 x 4 pixels, the first image 2 x 2"));
  const auto scaled = images(path("set"), {.height = 3, .width = 5}).slice(0, 2).data;
  EXPECT_EQ(scaled.sizes(), torch::IntArrayRef({2, 3, 3, 5}));
  EXPECT_TRUE(torch::allclose(scaled[1], torch::full({3, 3, 5}, 0.4), 1e-5, 1e-6));
}

TEST_F(ImageFileTest, AFolderWithoutImagesAndAnImageThatIsGoneAreNamed) {
  write("set/a/notes.txt", "");
  EXPECT_THAT(refused([&] { images(path("set")).size(); }), HasSubstr("holds no images"));
  EXPECT_THAT(refused([&] { images(path("nowhere")).size(); }), HasSubstr("nowhere"));
  EXPECT_THAT(refused([&] { images(path("set"), {.channels = 4}); }), HasSubstr("channels"));
  EXPECT_THAT(refused([&] { images(path("set"), {.height = 4}); }), HasSubstr("both height and width"));
  write_png("set/a/1.png", 1, 1, PNG_FORMAT_RGB, {1, 2, 3});
  const auto sut = images(path("set"));
  EXPECT_EQ(sut.size(), 1);
  std::filesystem::remove(path("set/a/1.png"));
  EXPECT_THAT(refused([&] { sut.get({0}); }), HasSubstr("1.png"));
}

}  // namespace
}  // namespace paceline::train
