#include "algorithms/cluster/kept_states.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "runtime/store/shared_memory.h"

namespace paceline::cluster {
namespace {

const ActorId kActor{5};

process::Fd sealed() {
  auto fd = *store::create_memory({.name = "state", .size = 4096, .sealed = store::MemoryShape::Sealed::later});
  EXPECT_TRUE(store::seal_size(fd));
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
  EXPECT_EQ(sut.keep(kActor, *store::create_memory(
                                 {.name = "state", .size = 4096, .sealed = store::MemoryShape::Sealed::later}))
                .error()
                .kind,
            ErrorKind::invalid);
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
