#include "algorithms/cluster/kept_states.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "runtime/memory/memfd.h"

namespace paceline::cluster {
namespace {

const ActorId kActor{5};

process::Fd sealed() {
  auto fd = *memory::create_memfd("state", 4096);
  EXPECT_TRUE(memory::add_seals(fd, F_SEAL_SHRINK | F_SEAL_GROW));
  return fd;
}

TEST(KeptStatesTest, WhatIsKeptIsThereUntilItsActorIsForgotten) {
  KeptStates sut;
  EXPECT_EQ(sut.find(kActor), nullptr);
  ASSERT_TRUE(sut.keep(kActor, sealed()));
  EXPECT_NE(sut.find(kActor), nullptr);
  EXPECT_EQ(sut.find(ActorId{6}), nullptr);
  EXPECT_TRUE(sut.forget(kActor));
  EXPECT_FALSE(sut.forget(kActor));
  EXPECT_EQ(sut.size(), 0u);
}

TEST(KeptStatesTest, MemoryWhoseSizeMayChangeIsNotKept) {
  KeptStates sut;
  EXPECT_EQ(sut.keep(kActor, *memory::create_memfd("state", 4096)).error().kind, ErrorKind::invalid);
  EXPECT_EQ(sut.keep(kActor, process::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))).error().kind, ErrorKind::invalid);
  EXPECT_EQ(sut.size(), 0u);
}

TEST(KeptStatesTest, AnActorHasOne) {
  KeptStates sut;
  ASSERT_TRUE(sut.keep(kActor, sealed()));
  const int first = sut.find(kActor)->get();
  EXPECT_EQ(sut.keep(kActor, sealed()).error().kind, ErrorKind::invalid);
  EXPECT_EQ(sut.find(kActor)->get(), first);
}

}  // namespace
}  // namespace paceline::cluster
