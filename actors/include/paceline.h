#pragma once

/// Tasks and actors for ordinary C++ programs: async(), create(), Handle, Future. No torch, no macros, no registration.
/// Link Paceline::paceline: it carries the linker option that lets workers be forked from the program itself.
#include "actors/async.h"
#include "actors/handle.h"
