#include "runtime/memory/window.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace paceline::memory {
namespace {

constexpr Window::Layout kLayout{.elements = 3000, .dtype = Dtype::f32, .buffers = 5};

Window make(const Window::Layout& layout = kLayout) {
  auto window = Window::create(layout);
  EXPECT_TRUE(window) << window.error().text;
  return std::move(*window);
}

/// The roles word, at its place in the first page: what a broken worker could scribble over.
std::uint64_t* roles_word(const Window& window) {
  auto* words = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(&window.progress()) - 64);
  return words;
}

TEST(WindowTest, BeginsZeroedWithTheWorkerInItsFirstBuffer) {
  const auto sut = make();
  EXPECT_EQ(sut.writing(), 0);
  EXPECT_FALSE(sut.published());
  EXPECT_FALSE(sut.sealed());
  EXPECT_FALSE(sut.latest());
  for (Buffer b = 0; b < 5; ++b) {
    const auto data = sut.data(b);
    ASSERT_EQ(data.size(), 12000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.data()) % 4096, 0u);
    EXPECT_TRUE(std::all_of(data.begin(), data.end(), [](std::byte v) { return v == std::byte{0}; }));
  }
}

TEST(WindowTest, BuffersDoNotOverlapInAnyLayout) {
  for (const std::uint64_t elements : {0ull, 1ull, 1024ull, 1025ull, 700'000ull})
    for (const auto dtype : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16}) {
      const auto sut = make({.elements = elements, .dtype = dtype, .buffers = 3});
      for (Buffer b = 0; b < 3; ++b) std::memset(sut.data(b).data(), 'a' + b, sut.data(b).size());
      EXPECT_EQ(sut.writing(), 0);
      for (Buffer b = 0; b < 3; ++b) {
        const auto data = sut.data(b);
        EXPECT_TRUE(
            std::all_of(data.begin(), data.end(), [&](std::byte v) { return v == static_cast<std::byte>('a' + b); }));
      }
    }
}

TEST(WindowTest, BytesNeededCoversAllBuffersAndTheHeader) {
  EXPECT_EQ(Window::bytes_needed({.elements = 1024, .dtype = Dtype::f32, .buffers = 2}), 3u * 4096);
  EXPECT_EQ(Window::bytes_needed({.elements = 1025, .dtype = Dtype::f64, .buffers = 1}), 4096u + 3u * 4096);
}

TEST(WindowTest, ARoundGoesThroughAllRoles) {
  auto sut = make();
  ASSERT_TRUE(sut.publish(true));
  EXPECT_EQ(sut.published(), 0);
  EXPECT_EQ(sut.writing(), 1);
  EXPECT_EQ(sut.seal(), 0);
  const auto result = sut.begin_result();
  ASSERT_EQ(result, 2);
  sut.retain();
  EXPECT_EQ(sut.latest(), 2);
  sut.unseal(Window::Unseal::keep);
  EXPECT_EQ(sut.published(), 0);
  EXPECT_EQ(sut.adopt(), 2);
  EXPECT_EQ(sut.writing(), 2);
  EXPECT_FALSE(sut.latest());
}

TEST(WindowTest, ASealedBufferStaysAsItIsWhateverTheWorkerPublishes) {
  auto sut = make();
  std::memset(sut.data(*sut.writing()).data(), 7, 100);
  ASSERT_TRUE(sut.publish(true));
  const auto sealed = sut.seal();
  ASSERT_TRUE(sealed);
  for (int i = 0; i < 10; ++i) {
    ASSERT_NE(sut.writing(), sealed);
    std::memset(sut.data(*sut.writing()).data(), i, 100);
    ASSERT_TRUE(sut.publish(true));
  }
  EXPECT_EQ(sut.data(*sealed)[99], std::byte{7});
}

TEST(WindowTest, ResetItIsAsCreatedWhateverItsWorkerLeftAndCountsOn) {
  auto sut = make();
  sut.tag(0).iteration = 7;
  sut.progress().samples = 5;
  ASSERT_TRUE(sut.publish(true));
  ASSERT_TRUE(sut.seal());
  ASSERT_TRUE(sut.begin_result());
  *roles_word(sut) = 0xffff'ffff'ffff'ffff;
  sut.reset();
  EXPECT_EQ(sut.writing(), 0);
  EXPECT_FALSE(sut.published() || sut.sealed() || sut.latest());
  EXPECT_EQ(sut.tag(0).iteration, -1);
  EXPECT_EQ(sut.progress().samples, 5) << "of its worker, whichever process that is";
  EXPECT_TRUE(sut.publish(true));
  EXPECT_TRUE(sut.begin_result());
}

TEST(WindowTest, AMappedWindowSeesTheSameRolesDataAndTags) {
  auto agent = make();
  auto worker = Window::map(agent.fd().duplicate(), kLayout);
  ASSERT_TRUE(worker) << worker.error().text;
  worker->data(0)[11999] = std::byte{42};
  worker->tag(0) = {.iteration = 17,
                    .bodies = 2,
                    .divisor = 3,
                    .loss_sum = 0.5,
                    .loss_count = 1,
                    .samples = 32,
                    .learning_rate = 0.1};
  worker->progress().step = 9;
  ASSERT_TRUE(worker->publish(false));
  const auto sealed = agent.seal();
  ASSERT_EQ(sealed, 0);
  EXPECT_EQ(agent.data(0)[11999], std::byte{42});
  EXPECT_EQ(agent.tag(0).iteration, 17);
  EXPECT_EQ(agent.progress().step.load(), 9);
  ASSERT_EQ(agent.begin_result_in_place(), 0);
  agent.deliver();
  EXPECT_EQ(worker->writing(), 0);
}

TEST(WindowTest, AWindowOfAnotherLayoutIsRefused) {
  auto agent = make();
  const auto longer = Window::map(agent.fd().duplicate(), {.elements = 9000, .dtype = Dtype::f32, .buffers = 5});
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().kind, ErrorKind::invalid);
  // The same number of bytes, but other elements.
  const auto other = Window::map(agent.fd().duplicate(), {.elements = 1500, .dtype = Dtype::f64, .buffers = 5});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::invalid);
  EXPECT_NE(other.error().text.find("3000"), std::string::npos) << other.error().text;
}

TEST(WindowTest, ADescriptorOfSomethingElseIsRefused) {
  const auto pipe = [] {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::close(ends[1]);
    return process::Fd(ends[0]);
  };
  EXPECT_FALSE(Window::map(pipe(), kLayout));
  EXPECT_FALSE(Window::map({}, kLayout));
  const auto size = static_cast<off_t>(Window::bytes_needed(kLayout));
  // A file that its owner can shrink under our feet.
  process::Fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), size), 0);
  EXPECT_FALSE(Window::map(process::BorrowedFd(unsealed).duplicate(), kLayout));
  // Sealed and of the right size, but full of zeros.
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  const auto zeros = Window::map(std::move(unsealed), kLayout);
  ASSERT_FALSE(zeros);
  EXPECT_NE(zeros.error().text.find("no window"), std::string::npos) << zeros.error().text;
}

TEST(WindowTest, TheFileCannotBeShrunkUnderTheMapping) {
  const auto sut = make();
  EXPECT_NE(::ftruncate(sut.fd().get(), 4096), 0);
}

TEST(WindowTest, ImpossibleLayoutsAreRefusedInOneLine) {
  for (const std::int32_t buffers : {0, -1, 15}) {
    const auto refused = Window::create({.elements = 10, .dtype = Dtype::f32, .buffers = buffers});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  }
  const auto wrapping = Window::create({.elements = ~0ull / 4, .dtype = Dtype::f32, .buffers = 14});
  ASSERT_FALSE(wrapping);
  EXPECT_EQ(wrapping.error().kind, ErrorKind::infeasible);
}

TEST(WindowTest, AWindowLargerThanTheMachineSaysWhatIsNeededAndWhatIsThere) {
  const auto refused = Window::create({.elements = 1ull << 38, .dtype = Dtype::f32, .buffers = 5});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::infeasible);
  EXPECT_NE(refused.error().text.find("windows need 5242881 MiB, "), std::string::npos) << refused.error().text;
  EXPECT_NE(refused.error().text.find("fewer workers, or a strategy with fewer buffers"), std::string::npos);
}

TEST(WindowTest, RolesThatABrokenWorkerScribbledLeadNowhere) {
  auto sut = make();
  ASSERT_EQ(*roles_word(sut), 0xffff0u) << "the word is not where this test expects it";
  for (const std::uint64_t garbage : {~0ull, 0ull, 0x5555'5555'5555'5555ull, 0xedcbaull, 0xfffffull | 1ull << 63}) {
    *roles_word(sut) = garbage;
    EXPECT_FALSE(sut.writing());
    EXPECT_FALSE(sut.published());
    EXPECT_FALSE(sut.sealed());
    EXPECT_FALSE(sut.latest());
    EXPECT_FALSE(sut.seal());
    EXPECT_FALSE(sut.begin_result());
    EXPECT_FALSE(sut.begin_result_in_place());
    EXPECT_FALSE(sut.publish(true));
    EXPECT_FALSE(sut.adopt());
    sut.unseal(Window::Unseal::keep);
    sut.deliver();
    sut.retain();
    EXPECT_EQ(*roles_word(sut), garbage);
  }
}

// For TSan: one mapping, a worker's and an agent's thread. Every element of a buffer carries the number of its
// publication.
TEST(WindowTest, AThreadThatPublishesAndOneThatSealsNeverShareABuffer) {
  constexpr int kRounds = 2000;
  auto sut = make({.elements = 256, .dtype = Dtype::f64, .buffers = 5});
  std::atomic<bool> done{false};
  std::thread worker([&] {
    for (int t = 1; t <= kRounds; ++t) {
      const auto data = sut.data(*sut.writing());
      auto* numbers = reinterpret_cast<double*>(data.data());
      std::fill_n(numbers, 256, t);
      sut.tag(*sut.writing()).iteration = t;
      if (!sut.publish(true)) ADD_FAILURE() << "no free buffer";
      if (t % 3 == 0) {
        const auto merged = sut.adopt();
        if (merged) {
          EXPECT_GT(reinterpret_cast<double*>(sut.data(*merged).data())[255], 0);
        }
      }
    }
    done = true;
  });
  std::int64_t last = 0;
  int sealed_count = 0;
  while (!done || sealed_count == 0) {
    const auto sealed = sut.seal();
    if (!sealed) {
      std::this_thread::yield();
      continue;
    }
    ++sealed_count;
    const auto* numbers = reinterpret_cast<const double*>(sut.data(*sealed).data());
    const auto iteration = sut.tag(*sealed).iteration;
    EXPECT_GE(iteration, last);
    last = iteration;
    EXPECT_TRUE(std::all_of(numbers, numbers + 256, [&](double v) { return v == static_cast<double>(iteration); }));
    const auto result = sut.begin_result();
    if (!result) {
      ADD_FAILURE() << "no free buffer";
      break;
    }
    std::copy_n(numbers, 256, reinterpret_cast<double*>(sut.data(*result).data()));
    sut.retain();
    sut.unseal(sealed_count % 2 == 0 ? Window::Unseal::keep : Window::Unseal::recycle);
  }
  worker.join();
  EXPECT_GT(last, 0);
}

}  // namespace
}  // namespace paceline::memory
