# Every message between Paceline's processes. One Envelope is the first frame; bulk bytes follow as frames of their own.
# The version is the whole contract: peers of another version are refused by name (runtime/wire/codec.h).
@0xc3a9d2f1b7e84a55;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("paceline::wire");

struct Envelope {
  version @0 :UInt32;
  union {
    hello @1 :Hello;                # first message on every connection
    welcome @2 :Welcome;
    refused @3 :Failure;            # the connection ends

    # driver and CLI -> agent -> head; every request is answered by `reply` with the same id
    request @4 :Request;
    reply @5 :Reply;
    jobEvent @6 :JobEvent;          # to the driver of the job

    # head <-> agents
    nodes @7 :Nodes;                # membership, after every change
    openJob @8 :OpenJob;            # head -> all agents of the job, again for each leg of it; agent -> a head that was started anew: runs here
    closeJob @9 :CloseJob;
    nodeGone @38 :NodeGone;         # head -> the agents that go on without it: the job has lost it
    jobDriven @45 :JobDriven;       # head -> the agents of the job: its driver has another agent now
    drain @48 :Drain;               # head -> all agents: a worker of a job is to leave it

    # actors and tasks
    createActor @10 :CreateActor;
    actorReady @11 :ActorReady;
    call @12 :Call;
    callResult @13 :CallResult;     # bulk frame: the result
    pushTask @14 :PushTask;         # to a lent worker, through agents; bulk frame: the envelope of the task's call
    executable @15 :Executable;     # from a driver or a worker: how the workers that it asks for are started
    wants @39 :Wants;               # from a process: of how many workers for tasks it has use; what it gives back
    loan @40 :Loan;                 # to it: a worker is lent, gone, or asked back
    signal @41 :Signal;             # an owner's, to who runs or queues a call or a task; or a wish, to the owner
    waits @37 :Waits;               # from a worker: its thread waits for a result, or goes on
    alive @35 :Alive;               # to a worker: is somebody there? From its I/O thread: yes
    output @42 :Output;             # agent -> the driver, maybe through its node's: what workers print
    outputWanted @43 :OutputWanted; # from the driver, maybe through its node's agent

    # worker's session <-> its agent
    openShare @16 :OpenShare;       # this and the next two are answered by the last three, under their request's number
    replicaWanted @20 :Replica;
    openObject @21 :ObjectKey;
    sealObject @22 :ObjectKey;
    arrive @17 :Arrive;
    report @18 :Report;
    jobTerms @46 :JobTerms;         # these go over the Unix socket, with their descriptors (runtime/process/descriptor_message.h)
    replica @19 :Replica;           # a captured one as well
    object @47 :ObjectGiven;

    # agent <-> agent
    activate @23 :Activate;
    partial @24 :Partial;           # bulk frame: the partial sum
    released @25 :Released;
    replicaData @26 :Replica;       # bulk frame: the replica
    stopRounds @27 :StopRounds;
    settled @28 :Settled;           # to node 0, at the end of a job
    flushed @44 :Flushed;           # what was held here of lost nodes has been passed on
    share @29 :Share;               # bulk frame: what a worker contributes to its neighbours' mixings
    gone @30 :Gone;
    awaited @31 :Awaited;
    ending @32 :Ending;
    exchange @33 :Exchange;         # bulk frame where a model, a step or a mean travels
    batch @34 :Batch;
    replicaNone @36 :Replica;       # to who wants one: nobody here can give; rank, update: the furthest that wants one itself
  }
}

struct Hello {
  role @0 :Text; name @1 :Text; pid @2 :Int32; build @3 :Text; address @4 :Text; cpus @5 :Int32;
  incarnation @6 :UInt64; newestJob @7 :UInt64;  # of an agent, for the head: who it is since its start, the highest job it was told of
  memory @8 :UInt64;                             # bytes that its tasks may take
}
struct Welcome { name @0 :Text; node @1 :Int32; process @2 :UInt32; }   # process: of the ids that it makes, see actors/process_ids.h
struct Failure {
  kind @0 :Text; text @1 :Text;
  causes @2 :List(Cause);     # of what tasks and actors threw: what was waited for first, the first cause last
  leftOut @3 :UInt32;         # of their middle
  first @4 :Text;             # the line of the first cause, where that is not `text`
}
struct Cause { kind @0 :Text; what @1 :Text; node @2 :Int32 = -1; worker @3 :Text; log @4 :Text; text @5 :Text; }

struct Request { id @0 :UInt64; verb @1 :Text; json @2 :Text; from @3 :Text; }   # verbs: see algorithms/cluster/head.h
struct Reply { id @0 :UInt64; ok @1 :Bool; json @2 :Text; error @3 :Failure; to @4 :Text; }
# What a node tells the driver of a job. Names of fields and of what it is are those of the file of events, with
# underscores (algorithms/job/job_event_wire.h); what they mean stands in docs/command-line.md.
struct JobEvent {
  job @0 :UInt64; to @1 :Text; node @2 :Int32;
  number @3 :UInt64; oldest @4 :UInt64;   # number: of all that this node has told of the job, from 1; oldest: that it can tell again
  union {
    memory @5 :Memory;
    firstStep @6 :FirstStep;
    started @7 :Started;
    progress @8 :Progress;
    evaluated @9 :Evaluated;
    saved @10 :Saved;
    metric @11 :Metric;
    left @12 :Left;
    nodeLost @13 :NodeLost;
    file @14 :File;
    final @15 :Final;
    stopping @16 :Stopping;
    warning @17 :Words;
    failed @18 :Words;
    closed @19 :Progress;
    returned @20 :Returned;
    scale @21 :Scale;       # the head's: somebody has asked for so many workers
    ledger @22 :Ledger;     # epochs that are over
    changed @23 :Changed;   # the job goes on with another strategy
    drain @24 :Leaves;      # the head's: somebody has asked a worker, or all of a node, to leave
    nodeJoined @25 :NodeJoined;
    room @26 :Room;         # the head's: a node that has no part in the job, and could have one
  }
  struct Memory { node @0 :Int32; bytesWorker @1 :Float64; bytesNode @2 :Float64; }
  struct FirstStep { worker @0 :Int32; }
  struct Started { node @0 :Int32; updates @1 :Int64; first @2 :Int64; }
  struct Evaluated {
    worker @0 :Int32; update @1 :Int64; value @2 :Float64;
    clockS @3 :Float64; samples @4 :Int64; loss @5 :Float64; best @6 :Bool; reached @7 :Bool;
  }
  struct Saved { worker @0 :Int32; update @1 :Int64; }
  struct Metric { worker @0 :Int32; update @1 :Int64; clockS @2 :Float64; name @3 :Text; value @4 :Float64; }
  struct Left { worker @0 :Int32; ended @1 :Bool; text @2 :Text; returns @3 :Bool; drained @4 :Bool; withNode @5 :Bool; }   # returns: another process comes in its place; drained: as was asked; withNode: its node is lost
  struct Returned { worker @0 :Int32; update @1 :Int64; afterS @2 :Float64; text @3 :Text; bytes @4 :UInt64; samples @5 :Int64; }   # afterS: since its last process ended; bytes: of the state that it was given; samples: that it would have done meanwhile
  struct Scale { workers @0 :Int32; text @1 :Text; }
  struct Leaves { worker @0 :Int32; node @1 :Int32; all @2 :Bool; text @3 :Text; }   # all: of the node, to which nobody comes any more; worker: -1 then
  struct Changed { update @0 :Int64; strategy @1 :Text; afterS @2 :Float64; text @3 :Text; lrFactor @4 :Float64; }   # afterS: since its workers were held for that
  struct NodeLost { node @0 :Int32; text @1 :Text; }
  struct NodeJoined { node @0 :Int32; leg @1 :Int32; text @2 :Text; places @3 :List(Int32); }   # from this leg on it takes part, and these places, its own, can be taken
  struct Room { node @0 :Int32; cpus @1 :Int32; text @2 :Text; }
  struct File { path @0 :Text; hash @1 :Text; }
  struct Final { worker @0 :Int32; model @1 :Text; }
  struct Stopping { node @0 :Int32; text @1 :Text; }
  struct Words { text @0 :Text; }
}
# What became of a node's samples, by epoch (scheduler/ledger.h); tail, samples: of all workers.
struct Ledger { node @0 :Int32; epochs @1 :List(Epoch); leg @2 :Int32;
  struct Epoch {
    epoch @0 :Int64; committed @1 :Int64; abandoned @2 :Int64; skipped @3 :Int64; late @4 :Int64; lost @5 :Int64; twice @6 :Int64;
    open @7 :Int64; tail @8 :Int64; samples @9 :Int64;
  }
}
# A node's part of a job, at one moment.
struct Progress {
  job @0 :UInt64; node @1 :Int32; strategy @2 :Text;
  starting @3 :Starting;      # while workers have not shared their models
  training @4 :Training;      # from then on that the node knows how long the job is
  struct Starting { workers @0 :List(Int32); sinceS @1 :Float64; }
  struct Training {
    update @0 :Int64; updates @1 :Int64; period @2 :Int64;
    clockS @3 :Float64; medianStepS @4 :Float64; stepS @5 :Float64; loss @6 :Float64; samples @7 :Int64;
    counters @8 :Counters; workers @9 :List(Worker);
    waiting @10 :Waiting;     # while somebody is waited for
    ledger @11 :Ledger;       # of epochs that are not over
  }
  struct Counters {
    groupAverages @0 :Int64; globalAverages @1 :Int64; skipped @2 :Int64; lateMerges @3 :Int64; abandonedBodies @4 :Int64;
    staleness @5 :List(Int64);
  }
  struct Worker {
    rank @0 :Int32; node @1 :Int32; pid @2 :Int64; step @3 :Int64; lag @4 :Int64;
    samplesPerS @5 :Float64; samples @6 :Int64; state @7 :Text; computeS @8 :Float64; waitS @9 :Float64;
  }
  struct Waiting { update @0 :Int64; missing @1 :List(Int32); sinceS @2 :Float64; }
}

struct NodeEntry { node @0 :Int32; name @1 :Text; address @2 :Text; cpus @3 :Int32; pid @4 :Int32; memory @5 :UInt64; }
struct Nodes { epoch @0 :Int64; nodes @1 :List(NodeEntry); }

struct Member { rank @0 :Int32; node @1 :Int32; actor @2 :UInt64; incarnation @3 :UInt64;   # of the node's agent
  leg @4 :Int32; }            # with which the node came back; 0: it was not lost
struct OpenJob {
  job @0 :UInt64; members @1 :List(Member);
  json @2 :Text;              # its options: strategy, seed, run directory ...
  age @3 :Float64;            # seconds
  without @4 :List(Int32);    # nodes that it has lost, and goes on without
  driver @5 :JobDriver;
  leg @6 :Int32;              # the newest that was asked for
  leaving @7 :List(Member);   # nodes without a place in it: they end the leg before with the others; ranks say nothing
}
struct JobDriver { node @0 :Int32; peer @1 :Text; incarnation @2 :UInt64; request @3 :UInt64; moves @4 :UInt32; }  # of its agent; which of its requests the job answers; moves: from one agent to another, so far
struct JobDriven { job @0 :UInt64; driver @1 :JobDriver; heard @2 :List(Heard);    # heard: of what each node has told, up to this number
  struct Heard { node @0 :Int32; number @1 :UInt64; }
}
struct NodeGone { job @0 :UInt64; node @1 :Int32; cause @2 :Text; }
struct CloseJob { job @0 :UInt64; reason @1 :Text; }
struct Drain { job @0 :UInt64; rank @1 :Int32; }

struct FunctionRef { build @0 :Text; offset @1 :UInt64; }                          # build id of the object, offset of the thunk
struct CreateActor { actor @0 :UInt64; function @1 :FunctionRef; arguments @2 :List(Data); name @3 :Text; owner @4 :Text; node @5 :Int32;
  executable @6 :Executable;                    # between agents only
  restarts @7 :Int32; callRetries @8 :Int32;    # below 0: always
  type @9 :Text;                                # its class, as C++ writes it
  claims @10 :Bool;                             # the name is to be its own in the cluster: it begins when the head has granted it; else it is for people
  getIfExists @11 :Bool;                        # who has the name already will do
  detached @12 :Bool;                           # outlives its owner
  after @13 :UInt64;                            # has the name, and ends: it is no hindrance; 0: nobody
  threads @14 :UInt32 = 1; groups @15 :List(ConcurrencyGroup);   # that calls run on: in no group, and in each
  job @16 :UInt64;                              # that it works for: as long as that runs, it outlives its owner's node; 0: none
  restartsWithinS @17 :Float64;                 # so many in any time as long as this; 0: ever
}
struct ActorReady { actor @0 :UInt64; node @1 :Int32; error @2 :Failure; dead @3 :Bool; owner @4 :Text; named @5 :UInt64; }   # named: not ready yet, but this actor has the name that it claims, itself or another
struct ConcurrencyGroup { name @0 :Text; threads @1 :UInt32; }
struct Call { task @0 :UInt64; actor @1 :UInt64; function @2 :FunctionRef; arguments @3 :List(Data); owner @4 :Text; resent @5 :Int32; kill @6 :Bool; group @7 :Text; fence @8 :Bool; name @9 :Text; number @10 :UInt64; ahead @11 :UInt32; again @12 :Bool; }   # resent: so often before, to an actor whose process died; kill: no call, the actor ends; group: of its concurrency groups; fence: no call, answered as soon as it has arrived; name: a task's, for people; number: of a call to an actor, rising with each of the process that makes it; ahead: values of a stream that it may give before they are taken; again: has been made through an agent that is gone, its result is to come this way
struct CallResult { task @0 :UInt64; ok @1 :Bool; error @2 :Failure; owner @3 :Text; bytes @4 :Data; byLine @5 :Bool; unbegun @6 :Bool; ranNs @7 :UInt64; item @8 :UInt64; }   # byLine: of a call that came past the agent; unbegun: a task that is given back, its worker has something else to do; item: no result, but this value of a stream, from 1
struct Executable { path @0 :Text; args @1 :List(Text); env @2 :List(Text); build @3 :Text; logs @4 :Text; directory @5 :Text;
  logsIfPrinted @6 :Bool;             # that folder is made when needed, and keeps nothing of workers that print nothing
  driver @7 :Text; driverNode @8 :Int32;   # who shows what workers print; empty: nobody
}

# Tasks are their owner's; agents lend it workers (actors/router/lending.h).
struct Shape { cpus @0 :Float32; node @1 :Int32 = -1; memory @2 :UInt64; spread @3 :Bool; }   # what a task needs; node: of one's choice, or (spread) chosen in turn, or -1; memory: bytes
struct PushTask { worker @0 :UInt64; owner @1 :Text; task @2 :UInt64; }
struct Wants {
  shape @0 :Shape;
  workers @1 :UInt32;                         # so many are of use, those that it has among them
  returned @2 :List(UInt64);                  # workers of any shape that it needs no longer
  broken @3 :List(UInt64);                    # the same, and they are to end
  owner @4 :Text; root @5 :Text; executable @6 :Executable; gone @7 :Bool;   # between agents; gone: the owner has ended
}
struct Loan {
  owner @0 :Text; shape @1 :Shape; worker @2 :UInt64;
  kind @3 :Kind; count @4 :UInt32; error @5 :Failure;
  enum Kind { lent @0; gone @1; recalled @2; refused @3; }   # recalled: so many; refused: none of this shape can be had
}

struct Signal {
  task @0 :UInt64; worker @1 :UInt64; actor @2 :UInt64; owner @3 :Text; kind @4 :Kind; taken @5 :UInt64; isWish @6 :Bool;   # worker: that the task is with, or actor; isWish: of somebody else, to the owner
  enum Kind { cancel @0; end @1; taken @2; }   # end: if it runs its worker ends; taken: so many values of its stream have been
}

struct Waits { task @0 :UInt64; begins @1 :Bool; actor @2 :UInt64; within @3 :UInt64; }   # task 0: one that may end by itself, with a timeout; actor: that is called, 0: a task's; within: the task that waits
struct Alive {}

struct Output { to @0 :Text; node @1 :Int32; bytes @2 :UInt32; parts @3 :List(Part); all @4 :Bool;   # bytes: that `to` is to say again when it has shown them; all: nothing is left of what there was when it was asked for
  struct Part { who @0 :Text; log @1 :Text; leftOut @2 :UInt64; lines @3 :Data; }                   # leftOut: lines before these that are in the log only
}
struct OutputWanted { driver @0 :Text; node @1 :Int32; bytes @2 :UInt32; all @3 :Bool; gone @4 :Bool; }   # node: whose workers'; bytes: shown; all: now, the driver ends; gone: nobody is there who would show it

struct OpenShare { job @0 :UInt64; rank @1 :Int32; elements @2 :UInt64; dtype @3 :UInt8; worker @4 :UInt64; outerElements @5 :UInt64; request @6 :UInt64; }
struct Arrive { job @0 :UInt64; rank @1 :Int32; iteration @2 :Int64; computeNs @3 :Int64; loss @4 :Float64; bodies @5 :Int32 = -1; since @6 :Int64; through @7 :Int64; }
# bodies: not published yet, a batch is over after so many mini-batches that took computeNs each; [since, through): mini-batches that are done, none of which was told of before (scheduler/ledger.h)
struct Report {
  job @0 :UInt64; rank @1 :Int32; update @2 :Int64;   # update: that it has done last
  union {
    plan @3 :Plan;            # of worker 0 of a node, before its first step
    evaluated @4 :Float64;
    saved @5 :Void;           # a checkpoint between evaluations
    metric @6 :Metric;
    final @7 :Text;           # hash of its model
    file @8 :File;            # that the training reads
    warning @9 :Text;
    stop @10 :Text;           # the job is to end soon; why
    fail @11 :Text;           # at once; why
    left @12 :Void;           # it was asked to leave, and has done its last update
  }
  struct Plan { first @0 :Int64; updates @1 :Int64; evaluateEvery @2 :Int64; samples @3 :Int64; batch @4 :Int64; epoch @5 :Int64; epochEnd @6 :Int64; left @7 :Int64; place @8 :Text;
    elements @9 :UInt64; outerElements @10 :UInt64; dtype @11 :UInt8; clockS @12 :Float64; }   # elements to clockS: of one node for another, of which no worker is there: of a model, and what the clock of training shows; samples: of the data set, 0: there is none; batch: samples of a mini-batch; epochEnd: the first mini-batch after the epoch within which the job begins; left: samples of that epoch; place: where in the data the leg begins, in the words of the worker's program
  struct Metric { name @0 :Text; value @1 :Float64; }
  struct File { path @0 :Text; hash @1 :Text; }
}
# Wanted: of `update` or later; exact: of that one, to which nobody has come yet. None: who is furthest of those that ask; holds: somebody has one and cannot give it.
struct Replica {
  job @0 :UInt64; rank @1 :Int32; update @2 :Int64; size @3 :UInt64; node @4 :Int32; request @5 :UInt64;
  exact @6 :Bool; holds @7 :Bool;
  contents @8 :List(Content);   # of the model in it
}
struct ObjectKey { job @0 :UInt64; worker @1 :UInt64; key @2 :Text; size @3 :UInt64; request @4 :UInt64; }
struct ObjectGiven { fill @0 :Bool; }   # the worker is to fill it, and to seal it then
# What a job asks of a worker: algorithms/session/job_terms_wire.h.
struct JobTerms {
  workers @0 :Int32; bodies @1 :Int32; buffers @2 :Int32;
  firstUpdate @3 :Int64; updates @4 :Int64; nextRound @5 :Int64;
  seed @6 :UInt64; node @7 :Int32; trace @8 :Text; timeLimitS @9 :Float64;
  gradientsUntil @10 :Int64; modelsEvery @11 :Int64;
  outer @12 :Int32; outerMomentum @13 :Float64; outerRate @14 :Float64; outerNesterov @15 :Bool;
  lossWindow @16 :UInt64;
  publishesEvery @17 :Bool; abandons @18 :Bool; ownPace @19 :Bool; showsStart @20 :Bool; finishes @21 :Bool;
  stepsApart @22 :Bool; accumulates @23 :Bool; weighsBySamples @24 :Bool; rotateShards @25 :Bool;
  resetMomentum @26 :Bool; lrMayDecay @27 :Bool; returns @28 :Bool;
  job @29 :UInt64; goesOn @30 :Bool; place @31 :Text; lrFactor @32 :Float64;
}

struct Activate { job @0 :UInt64; root @1 :Int32; version @2 :Int64; count @3 :Bool; gone @4 :Int32 = -1; back @5 :Bool; }  # count: one worker more has arrived, a quorum fires; gone: this worker has left, or is back, no version
struct Content { rank @0 :Int32; from @1 :Int64; through @2 :Int64; }   # of what is sent: scheduler/contents.h
struct Partial { job @0 :UInt64; version @1 :Int64; group @2 :Int32; contributions @3 :Int32; bodies @4 :Int64; lossSum @5 :Float64; lossCount @6 :Int64; samples @7 :Int64; learningRate @8 :Float64; leaderNs @9 :Int64; stops @10 :Int32; weight @11 :Float64; of @12 :Int32 = -1; members @13 :Int64; contents @14 :List(Content); }   # of: the node whose it is, where another passes it on
struct Released { job @0 :UInt64; version @1 :Int64; ends @2 :Bool;               # ends: the job ends here, stay held until all are there
  evaluated @3 :JobEvent.Evaluated;                                                # what the evaluation gave, if it did
  next @4 :OpenJob;                                                                # the job ends there for this leg only, and goes on so
}
struct Flushed { job @0 :UInt64; lost @1 :List(Int32); }                           # all that are lost, as the sender knows
struct Settled { job @0 :UInt64; version @1 :Int64; node @2 :Int32; }              # all of this node's workers have the last version, or are gone; version below 0: a leg has not begun, and nobody there has a model to begin with
struct StopRounds { job @0 :UInt64; version @1 :Int64; reason @2 :Text; }

# Strategies whose workers are at versions of their own.
struct Share { job @0 :UInt64; rank @1 :Int32; version @2 :Int64; weight @3 :Float64; contents @4 :List(Content); }   # weight: of a push-sum
struct Gone { job @0 :UInt64; rank @1 :Int32; contributed @2 :Int64; mixed @3 :Int64; }   # its last versions
struct Awaited { job @0 :UInt64; rank @1 :Int32; version @2 :Int64; }                      # somebody has waited for this contribution beyond patience
struct Batch { job @0 :UInt64; version @1 :Int64; bodies @2 :Int64 = -1; of @3 :Int32 = -1; }   # of: as in Partial; an update of batches is over; bodies: what the workers of this node did of it
struct Ending { job @0 :UInt64; phase @1 :Phase; version @2 :Int64;                        # the leader asks how far all have begun, then decides: where the job ends
  begun @3 :List(Begun);          # of an answer: what each worker of the node has begun; of a graph's decision: who is in it
  graph @4 :Bool;                 # or after which version those that are left have a graph of their own
  number @5 :Int64;               # which of the job's graphs that is
  struct Begun { rank @0 :Int32; version @1 :Int64; }
  enum Phase { wish @0; ask @1; answer @2; decide @3; }
}

# Asynchronous strategies; a phase's arrow is in scheduler/asynchronous/, `version` an iteration of `rank`.
struct Exchange { job @0 :UInt64; phase @1 :Phase; rank @2 :Int32; partner @3 :Int32; version @4 :Int64;
  applied @5 :List(Int64);        # of a server's model: the last iteration of each rank that is in it
  contents @6 :List(Content);     # of a model that meets another
  enum Phase { push @0; pull @1; ask @2; offer @3; mean @4; decline @5; gather @6; done @7; model @8; back @9; }
}
