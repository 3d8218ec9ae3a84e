/* The worker's side of a strategy on plain memory: no torch, no C++ needed. `algorithms/train` is a thin adapter over
 * it.
 *
 * A worker's loop:
 *
 *   open -> { next -> BODY:     compute one mini-batch, then step_gradients() or step_model()
 *                     EVALUATE: evaluate the averaged model, then evaluated()
 *                     CAPTURE:  give a replica of the present state, capture()
 *                     SAVE:     write the present state to the run's checkpoint, saved()
 *                     RESTORE:  load the replica that `replica` holds, then restored()
 *                     NEXT_LEG: the job goes on with another strategy: reopen(), plan()
 *                     END:      leave the loop } -> close
 *
 * One thread a session. Every call that waits ends when the agent goes away (PACELINE_LOST). */
#ifndef PACELINE_ALGORITHMS_SESSION_SESSION_H
#define PACELINE_ALGORITHMS_SESSION_SESSION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paceline_session paceline_session;

typedef enum paceline_dtype { PACELINE_F32 = 0, PACELINE_F64 = 1, PACELINE_BF16 = 2, PACELINE_F16 = 3 } paceline_dtype;
typedef enum paceline_payload {
  PACELINE_GRADIENTS = 0, /* step_gradients() */
  PACELINE_MODELS = 1,    /* a local step, then step_model() */
  PACELINE_BOTH = 2,      /* step_gradients() gives the gradient for a local step, then step_model() */
} paceline_payload;

typedef struct paceline_session_config {
  const char* endpoint; /* the agent's ZeroMQ address */
  uint64_t worker;      /* this process's WorkerId */
  void* agent;          /* this process's process::DescriptorChannel to it; stays the caller's */
  uint64_t job;
  int32_t rank;
  uint64_t elements; /* of all parameters and whatever else travels with them, together */
  paceline_dtype dtype;
  uint64_t outer_elements; /* models: an outer step (slowmo, diloco, bmuf, block momentum) is made with so many of the
                            * first; the others are only averaged; 0: with all */
} paceline_session_config;

/* What the job looks like from here; constant after open. */
typedef struct paceline_session_info {
  paceline_payload payload; /* of the first update; each lease says its own */
  int32_t workers;          /* P */
  int32_t bodies;           /* mini-batches an update: N of nonblocking, --accumulate of others */
  int64_t first_update;     /* 0, or where a resumed run goes on */
  int64_t updates;          /* T: the job ends when update T-1 is executed */
  uint64_t seed;
  int32_t rotate_shards;  /* worker i reads shard (i + epoch) mod P */
  int32_t reset_momentum; /* the strategy's own wish: the optimiser's buffers are cleared at every averaging
                           * (PACELINE_MOVED), as block momentum has it */
  int32_t leg;            /* 0, or how often the job's strategy was changed while it ran */
  double lr_factor;       /* that learning rates are multiplied by in this leg */
  int32_t outer_step;     /* which one this worker makes after an averaging (algorithms::Outer::Kind), 0: none */
} paceline_session_info;

typedef enum paceline_next {
  PACELINE_END = 0,
  PACELINE_BODY,
  PACELINE_EVALUATE,
  PACELINE_CAPTURE,
  PACELINE_SAVE,
  PACELINE_RESTORE,
  PACELINE_LOST,
  PACELINE_NEXT_LEG
} paceline_next;

typedef struct paceline_lease {
  int64_t update;           /* iteration that the body belongs to: learning rate schedules and samples follow it */
  int32_t body;             /* 0..bodies-1 */
  paceline_payload payload; /* what its step gives to the others */
  int32_t lr_may_decay;     /* 0: where a schedule would lower the learning rate it is held, until this is 1 again */
} paceline_lease;

typedef struct paceline_span {
  void* data;
  uint64_t elements;
} paceline_span;

/* What the worker did in this mini-batch. */
typedef struct paceline_stats {
  double loss;
  int64_t samples;
  double learning_rate;
} paceline_stats;

typedef enum paceline_outcome {
  PACELINE_GO_ON = 0, /* not the last mini-batch of the update, or nothing was averaged; models: look whether
                       * paceline_session_model() is another buffer, with the same numbers */
  PACELINE_APPLY,   /* gradients: the averaged gradient lies in paceline_session_result(); step the optimiser with it */
  PACELINE_MOVED,   /* models: averaged; parameters now live in paceline_session_model(); set_data. Both, of
                     * step_gradients(): the batch came to nothing, there is no local step and no step_model() */
  PACELINE_DROPPED, /* the batch was abandoned and the update missed: next() will return RESTORE */
  PACELINE_OVER,    /* stopped or the agent is gone: next() will return END or LOST */
} paceline_outcome;

/* NULL on failure; the reason, one line, is in `error` (cut to `size`). */
paceline_session* paceline_session_open(const paceline_session_config* config, char* error, size_t size);
void paceline_session_close(paceline_session* session);
/* Answer to NEXT_LEG: the same session, with another window and another info; the model is in the caller's memory. 0 on
 * failure, as open(). */
int paceline_session_reopen(paceline_session* session, const paceline_session_config* config, char* error, size_t size);
paceline_session_info paceline_session_get_info(const paceline_session* session);

/* Before the first next(): how long the job is. Every worker gives the same numbers.
 * first_update: 0, or where a resumed run goes on; updates: T, the job ends when update T-1 is executed;
 * evaluate_every: updates between evaluations (at the next averaging of all), 0: at the end only, negative: never. */
void paceline_session_plan(paceline_session* session, int64_t first_update, int64_t updates, int64_t evaluate_every);

/* Before plan(), where the training is over a data set: its samples, and those of a mini-batch. `epoch`: within which
 * the job begins; its mini-batches before `end` (of each worker, counted through the whole job) are of that one, of
 * which `left` samples were left. What became of samples is told by epochs. `place`: the same in the caller's own
 * words, for who joins in this leg later. */
void paceline_session_deals(paceline_session* session, int64_t samples, int64_t batch, int64_t epoch, int64_t end,
                            int64_t left, const char* place);
/* What a worker that was there before said so of the present leg; empty: nobody has. */
const char* paceline_session_place(const paceline_session* session);

/* What to do next; blocks while others evaluate. `lease` is filled whatever is to be done: its update is the number of
 * completed ones. */
paceline_next paceline_session_next(paceline_session* session, paceline_lease* lease);

/* Where the parameters live now (the buffer being written); data NULL: in the caller's own memory, as long as gradients
 * are given. Looked at after next() and after each step: where it changes from NULL the caller copies its
 * parameters there and calls placed(), where it becomes NULL it copies them out of where they were. */
paceline_span paceline_session_model(const paceline_session* session);
/* Counts up when numbers that are not the caller's own come into paceline_session_model(), be its address another or
 * not. */
uint64_t paceline_session_averagings(const paceline_session* session);
/* Workers that had a part in the last average of all that this one took; 0: it has taken none, in this leg. */
int64_t paceline_session_members(const paceline_session* session);
/* The parameters were copied to paceline_session_model(), which may lie elsewhere then, with the same numbers. */
void paceline_session_placed(paceline_session* session);
/* Gradients: the averaged gradient, valid until the next step call; data NULL: it is the caller's own (one worker). */
paceline_span paceline_session_result(const paceline_session* session);

/* Gradients: one mini-batch is done; `pieces` are the parameters' gradients in order (data NULL: no gradient, counts as
 * zero). Adds them to the update's sum, publishes, and waits for the average when the update is complete or abandoned.
 */
paceline_outcome paceline_session_step_gradients(paceline_session* session, const paceline_span* pieces, size_t count,
                                                 const paceline_stats* stats);
/* Models: one local step is done, in place, in paceline_session_model(). Publishes, waits and flips where an averaging
 * is due. */
paceline_outcome paceline_session_step_model(paceline_session* session, const paceline_stats* stats);

/* Answer to EVALUATE: the metric that the target is compared with. */
void paceline_session_evaluated(paceline_session* session, double value);
/* Answer to CAPTURE: the worker's whole state, as bytes of the caller's own format, `elements` of each piece, one
 * behind the other; copied, once. */
void paceline_session_capture(paceline_session* session, const paceline_span* pieces, size_t count);
/* Answer to SAVE. */
void paceline_session_saved(paceline_session* session);
/* What the outer step goes on from, as bytes: where the present block began, then its momentum, each `outer_elements`
 * numbers of the window's type. Empty without one, and before the first block. A part of the worker's state. */
paceline_span paceline_session_outer(const paceline_session* session);
/* Goes on from such bytes, in place of what the first block would begin with. 0: they have another size. */
int paceline_session_set_outer(paceline_session* session, const void* data, size_t size);
/* Answer to RESTORE: the bytes that a donor captured. Call restored() when they are loaded: parameters (models: into
 * paceline_session_model()), optimiser state, user's state. */
paceline_span paceline_session_replica(const paceline_session* session);
void paceline_session_restored(paceline_session* session);
/* Sleeps until `seconds` have passed or the current batch is abandoned or the job stopped; returns the seconds slept.
 */
double paceline_session_sleep(paceline_session* session, double seconds);
/* A word to whoever watches the run: a line, and an event of its metrics. */
void paceline_session_warn(paceline_session* session, const char* text);
/* Ends the job for all workers at one version, the next averaging of all; `reason` is shown. */
void paceline_session_stop(paceline_session* session, const char* reason);
/* After END: the model that this worker ends with, `width` bytes an element. Its hash goes into the run's record: a
 * replay is compared with it. */
void paceline_session_end_with(paceline_session* session, const paceline_span* pieces, size_t count, size_t width);
/* A file whose contents the training depends on: its hash goes into the run's record, a replay wants the same. */
void paceline_session_uses_file(paceline_session* session, const char* path);
/* Ends the job as failed ("loss is NaN ..."). */
void paceline_session_fail(paceline_session* session, const char* reason);
/* A user's metric, shown and written to metrics.jsonl. */
void paceline_session_log(paceline_session* session, const char* name, double value);

/* An object of `size` bytes shared by all workers of the node, read only once it is sealed. The first that asks gets
 * *fill = 1, writes it and calls paceline_session_seal(); the others wait for that. NULL: failed, reason in `error`. */
void* paceline_session_object(paceline_session* session, const char* key, uint64_t size, int* fill, char* error,
                              size_t error_size);
void paceline_session_seal(paceline_session* session, const char* key);

#ifdef __cplusplus
}
#endif

#endif
