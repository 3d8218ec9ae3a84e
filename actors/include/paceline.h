#pragma once

/// Tasks and actors for ordinary C++ programs: async(), create(), get_actor(), kill(), Handle, Future, Stream, Async,
/// Generator, get(), wait(), map(), parallel_for(), ActorPool, Queue, cancel(), exit(), durable, arguments(). No torch,
/// no macros, no registration. Link Paceline::paceline: it carries the linker option that lets workers be forked from
/// the program itself.
#include "actors/actor_pool.h"
#include "actors/arguments.h"
#include "actors/async.h"
#include "actors/cancel.h"
#include "actors/coroutine.h"
#include "actors/durable.h"
#include "actors/exit.h"
#include "actors/get_actor.h"
#include "actors/handle.h"
#include "actors/map.h"
#include "actors/queue.h"
#include "actors/stream.h"
#include "actors/then.h"
#include "actors/wait.h"
