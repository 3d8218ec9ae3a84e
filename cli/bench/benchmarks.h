#pragma once

namespace paceline::bench {

/// One of Ray's microbenchmarks under its name there (`ray microbenchmark`; many_actors is of Ray's release tests), so
/// that figures can be laid side by side.
struct Benchmark {
  const char* name;
  const char* what;  ///< For --list: what is counted, in one line.
};

/// In the order in which they run. Part of the script, too, which has a function for each.
inline constexpr Benchmark kBenchmarks[] = {
    {"single_client_tasks_sync", "a task that returns 2 bytes; then its result is got"},
    {"single_client_tasks_async", "1,000 such tasks, then all results"},
    {"multi_client_tasks_async", "4 client actors, each of which does that with 10,000 tasks"},
    {"many_tasks", "10,000 such tasks, then all results"},
    {"1_1_actor_calls_sync", "a call of an actor that returns 2 bytes; then its result is got"},
    {"1_1_actor_calls_async", "1,000 such calls, then all results"},
    {"1_1_async_actor_calls_sync", "as 1_1_actor_calls_sync, of a method that is a coroutine"},
    {"1_1_async_actor_calls_async", "1,000 of these, then all results"},
    {"1_n_actor_calls_async", "a client actor, 5,000 calls to each of cores/2 actors"},
    {"n_n_actor_calls_async", "4 client tasks, 5,000 calls each, in turn to cores/2 actors"},
    {"single_client_wait_1k_refs", "1,000 such tasks, and waits for any one of them until none is left; counted once"},
    {"many_actors", "40 actors created, then a call of each"},
};

}  // namespace paceline::bench
