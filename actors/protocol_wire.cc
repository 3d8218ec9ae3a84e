#include "actors/protocol_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "actors/causes.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

#include <capnp/any.h>
#include <capnp/schema.h>

namespace paceline::actors {
namespace {

capnp::Data::Reader as_data(const Bytes& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

Bytes as_vector(capnp::Data::Reader data) {
  const auto* begin = reinterpret_cast<const std::byte*>(data.begin());
  return {begin, begin + data.size()};
}

using wire::text;

void write(wire::FunctionRef::Builder builder, const FunctionRef& ref) {
  builder.setBuild(ref.build);
  builder.setOffset(ref.offset);
}

FunctionRef read(wire::FunctionRef::Reader reader) { return {text(reader.getBuild()), reader.getOffset()}; }

void write(capnp::List<capnp::Data>::Builder builder, const std::vector<Bytes>& arguments) {
  for (unsigned i = 0; i < arguments.size(); ++i) builder.set(i, as_data(arguments[i]));
}

Result<std::vector<Bytes>> read(capnp::List<capnp::Data>::Reader reader) {
  if (reader.size() > kArgumentsMax) {
    return fail(ErrorKind::invalid, "a call with " + std::to_string(reader.size()) + " arguments; at most " +
                                        std::to_string(kArgumentsMax) + " are possible");
  }
  std::vector<Bytes> arguments;
  arguments.reserve(reader.size());
  for (auto argument : reader) arguments.push_back(as_vector(argument));
  return arguments;
}

void write(capnp::List<std::uint64_t>::Builder builder, const std::vector<WorkerId>& workers) {
  for (unsigned i = 0; i < workers.size(); ++i) builder.set(i, workers[i].value);
}

std::vector<WorkerId> read(capnp::List<std::uint64_t>::Reader reader) {
  std::vector<WorkerId> workers;
  for (auto worker : reader) workers.emplace_back(worker);
  return workers;
}

void write(wire::Shape::Builder builder, const Shape& shape) {
  builder.setCpus(shape.cpus);
  builder.setNode(shape.node.value);
  builder.setMemory(shape.memory);
  builder.setSpread(shape.spread);
}

Shape read(wire::Shape::Reader reader) {
  return {reader.getCpus(), NodeId(reader.getNode()), reader.getMemory(), reader.getSpread()};
}

void write(capnp::List<capnp::Text>::Builder builder, const std::vector<std::string>& texts) {
  for (unsigned i = 0; i < texts.size(); ++i) builder.set(i, texts[i]);
}

std::vector<std::string> read(capnp::List<capnp::Text>::Reader reader) {
  std::vector<std::string> texts;
  for (auto entry : reader) texts.push_back(wire::raw(entry));
  return texts;
}

void write(wire::Executable::Builder builder, const Executable& executable) {
  builder.setPath(executable.path);
  write(builder.initArgs(static_cast<unsigned>(executable.args.size())), executable.args);
  write(builder.initEnv(static_cast<unsigned>(executable.env.size())), executable.env);
  builder.setDirectory(executable.directory);
  builder.setBuild(executable.build);
  builder.setLogs(executable.logs);
  builder.setLogsIfPrinted(executable.logs_if_printed);
  if (executable.driver.empty()) return;
  builder.setDriver(executable.driver);
  builder.setDriverNode(executable.driver_node.value);
}

/// Whatever comes, a duration.
Duration ran_of(std::uint64_t ns) {
  return Duration(static_cast<std::int64_t>(std::min<std::uint64_t>(ns, std::uint64_t{1} << 53)));
}

/// Whatever comes, a number that can be added to others.
int threads_of(std::uint32_t threads) {
  return static_cast<int>(std::min<std::uint32_t>(threads, Concurrency::kThreadsMax + 1));
}

ErrorKind kind_named(std::string_view name) {
  for (auto kind :
       {ErrorKind::invalid, ErrorKind::not_found, ErrorKind::stale, ErrorKind::overloaded, ErrorKind::disconnected,
        ErrorKind::infeasible, ErrorKind::timed_out, ErrorKind::cancelled, ErrorKind::internal}) {
    if (to_string(kind) == name) return kind;
  }
  return ErrorKind::internal;
}

}  // namespace

void write(wire::Failure::Builder builder, const Error& error) {
  builder.setKind(std::string(to_string(error.kind)));
  builder.setText(error.text);
  if (!error.causes) return;
  const auto& links = error.causes->links;
  auto causes = builder.initCauses(static_cast<unsigned>(links.size()));
  for (unsigned i = 0; i < links.size(); ++i) {
    causes[i].setKind(std::string(to_string(links[i].kind)));
    causes[i].setWhat(links[i].what);
    causes[i].setNode(links[i].node);
    causes[i].setWorker(links[i].worker);
    causes[i].setLog(links[i].log);
    causes[i].setText(links[i].text);
  }
  builder.setLeftOut(static_cast<std::uint32_t>(error.causes->left_out));
  builder.setFirst(error.causes->first);
}

Error read(wire::Failure::Reader reader) {
  Error error{kind_named(text(reader.getKind())), text(reader.getText())};
  const auto links = reader.getCauses();
  if (links.size() == 0) return error;
  Causes causes{{}, reader.getLeftOut(), text(reader.getFirst())};
  constexpr unsigned kHalf = kLinksMax / 2;  // Who sends more has not kept to the bounds: the ends of it will do.
  for (unsigned i = 0; i < links.size(); ++i) {
    if (links.size() > kLinksMax && i == kHalf) {
      i = links.size() - kHalf;
      causes.left_out += links.size() - kLinksMax;
    }
    const auto link = links[i];
    causes.links.push_back({kind_named(text(link.getKind())), text(link.getWhat()), link.getNode(),
                            text(link.getWorker()), wire::raw(link.getLog()), text(link.getText())});
  }
  return bounded(std::move(error), std::move(causes));
}

Executable decode(wire::Executable::Reader reader) {
  return {wire::raw(reader.getPath()),      read(reader.getArgs()),       read(reader.getEnv()),
          wire::raw(reader.getDirectory()), wire::raw(reader.getBuild()), wire::raw(reader.getLogs()),
          reader.getLogsIfPrinted(),        text(reader.getDriver()),     NodeId{reader.getDriverNode()}};
}

Frames as_message(transport::Frame frame) {
  Frames frames;
  frames.push_back(std::move(frame));  // A list in braces would copy it.
  return frames;
}

Frames encode(const Executable& message) {
  wire::Message out;
  write(out.root().initExecutable(), message);
  return as_message(out.to_frame());
}

Frames encode(const CreateActor& message) {
  wire::Message out;
  auto builder = out.root().initCreateActor();
  builder.setActor(message.actor.value);
  write(builder.initFunction(), message.function);
  write(builder.initArguments(static_cast<unsigned>(message.arguments.size())), message.arguments);
  builder.setName(message.name);
  builder.setOwner(message.owner);
  builder.setNode(node_of(message.actor).value);
  if (!message.executable.path.empty()) write(builder.initExecutable(), message.executable);
  builder.setRestarts(message.rule.restarts);
  builder.setCallRetries(message.rule.call_retries);
  builder.setRestartsWithinS(seconds(message.rule.within));
  builder.setType(message.type);
  builder.setClaims(message.naming.claims);
  builder.setGetIfExists(message.naming.get_if_exists);
  builder.setDetached(message.naming.detached);
  builder.setAfter(message.naming.after.value);
  builder.setThreads(static_cast<std::uint32_t>(message.concurrency.threads));
  const auto& groups = message.concurrency.groups;
  auto built = builder.initGroups(static_cast<unsigned>(groups.size()));
  for (unsigned i = 0; i < groups.size(); ++i) {
    built[i].setName(groups[i].name);
    built[i].setThreads(static_cast<std::uint32_t>(groups[i].threads));
  }
  builder.setJob(message.job.value);
  return as_message(out.to_frame());
}

Frames encode(const ActorReady& message) {
  wire::Message out;
  auto builder = out.root().initActorReady();
  builder.setActor(message.actor.value);
  builder.setNode(node_of(message.actor).value);
  if (!message.error.text.empty()) write(builder.initError(), message.error);
  builder.setDead(message.dead);
  builder.setOwner(message.owner);
  builder.setNamed(message.named.value);
  return as_message(out.to_frame());
}

Frames encode(const Call& message) {
  wire::Message out;
  auto builder = out.root().initCall();
  builder.setTask(message.task.value);
  builder.setActor(message.actor.value);
  write(builder.initFunction(), message.function);
  write(builder.initArguments(static_cast<unsigned>(message.arguments.size())), message.arguments);
  if (!message.owner.empty()) builder.setOwner(message.owner);
  builder.setResent(message.resent);
  builder.setKill(message.kill);
  if (!message.group.empty()) builder.setGroup(message.group);
  builder.setFence(message.fence);
  if (!message.name.empty()) builder.setName(message.name);
  builder.setNumber(message.number);
  builder.setAhead(message.ahead);
  builder.setAgain(message.again);
  return as_message(out.to_frame());
}

Frames encode(CallResult message) {
  wire::Message out;
  auto builder = out.root().initCallResult();
  builder.setTask(message.task.value);
  builder.setOwner(message.owner);
  builder.setByLine(message.by_line);
  builder.setUnbegun(message.unbegun);
  builder.setRanNs(static_cast<std::uint64_t>(message.ran.count()));
  builder.setItem(message.item);
  builder.setOk(message.value.has_value());
  if (!message.value) {
    write(builder.initError(), message.value.error());
    return as_message(out.to_frame());
  }
  if (message.value->size() <= kInlineResultMax) {
    builder.setBytes(as_data(*message.value));
    return as_message(out.to_frame());
  }
  Frames frames;
  frames.push_back(out.to_frame());
  frames.push_back(*std::move(message.value));
  return frames;
}

Frames encode(PushTask message) {
  wire::Message out;
  auto builder = out.root().initPushTask();
  builder.setWorker(message.worker.value);
  builder.setOwner(message.owner);
  builder.setTask(message.task.value);
  auto frames = as_message(out.to_frame());
  frames.push_back(std::move(message.call));
  return frames;
}

Frames encode(const Wants& message) {
  wire::Message out;
  auto builder = out.root().initWants();
  write(builder.initShape(), message.shape);
  builder.setWorkers(message.workers);
  write(builder.initReturned(static_cast<unsigned>(message.returned.size())), message.returned);
  write(builder.initBroken(static_cast<unsigned>(message.broken.size())), message.broken);
  builder.setOwner(message.owner);
  builder.setRoot(message.root);
  if (!message.executable.path.empty()) write(builder.initExecutable(), message.executable);
  builder.setGone(message.gone);
  return as_message(out.to_frame());
}

Frames encode(const Loan& message) {
  wire::Message out;
  auto builder = out.root().initLoan();
  builder.setKind(static_cast<wire::Loan::Kind>(message.kind));
  builder.setOwner(message.owner);
  write(builder.initShape(), message.shape);
  builder.setWorker(message.worker.value);
  builder.setCount(message.count);
  if (!message.error.text.empty()) write(builder.initError(), message.error);
  return as_message(out.to_frame());
}

Frames encode(const Signal& message) {
  wire::Message out;
  auto builder = out.root().initSignal();
  builder.setTask(message.task.value);
  builder.setWorker(message.worker.value);
  builder.setActor(message.actor.value);
  builder.setOwner(message.owner);
  builder.setKind(static_cast<wire::Signal::Kind>(message.kind));
  builder.setTaken(message.taken);
  builder.setIsWish(message.is_wish);
  return as_message(out.to_frame());
}

Result<PushTask> decode(wire::PushTask::Reader reader, std::vector<transport::Frame>& frames) {
  if (frames.size() < 2) return fail(ErrorKind::invalid, "a task without its call");
  return PushTask{WorkerId(reader.getWorker()), TaskId(reader.getTask()), text(reader.getOwner()),
                  std::move(frames[1])};
}

Wants decode(wire::Wants::Reader reader) {
  return {read(reader.getShape()), reader.getWorkers(),    read(reader.getReturned()),     read(reader.getBroken()),
          text(reader.getOwner()), text(reader.getRoot()), decode(reader.getExecutable()), reader.getGone()};
}

Result<Loan> decode(wire::Loan::Reader reader) {
  if (reader.getKind() > wire::Loan::Kind::REFUSED) return fail(ErrorKind::invalid, "a loan of an unknown kind");
  return Loan{static_cast<Loan::Kind>(reader.getKind()),
              text(reader.getOwner()),
              read(reader.getShape()),
              WorkerId(reader.getWorker()),
              reader.getCount(),
              read(reader.getError())};
}

Result<Signal> decode(wire::Signal::Reader reader) {
  if (reader.getKind() > wire::Signal::Kind::TAKEN) return fail(ErrorKind::invalid, "a signal of an unknown kind");
  return Signal{TaskId(reader.getTask()),
                WorkerId(reader.getWorker()),
                ActorId(reader.getActor()),
                text(reader.getOwner()),
                static_cast<Signal::Kind>(reader.getKind()),
                reader.getTaken(),
                reader.getIsWish()};
}

Result<CreateActor> decode(wire::CreateActor::Reader reader) {
  auto arguments = read(reader.getArguments());
  if (!arguments) return tl::unexpected(std::move(arguments).error());
  CreateActor message{ActorId(reader.getActor()),
                      read(reader.getFunction()),
                      *std::move(arguments),
                      text(reader.getName()),
                      text(reader.getOwner()),
                      decode(reader.getExecutable()),
                      {reader.getRestarts(), reader.getCallRetries(), from_seconds(reader.getRestartsWithinS())},
                      text(reader.getType()),
                      {reader.getClaims(), reader.getGetIfExists(), reader.getDetached(), ActorId(reader.getAfter())}};
  if (message.actor.value == 0) return fail(ErrorKind::invalid, "an actor without an id");
  message.concurrency.threads = threads_of(reader.getThreads());
  for (const auto group : reader.getGroups())
    message.concurrency.groups.push_back({text(group.getName()), threads_of(group.getThreads())});
  if (const auto checked = message.concurrency.check(); !checked) return tl::unexpected(checked.error());
  message.job = JobId(reader.getJob());
  return message;
}

Result<ActorReady> decode(wire::ActorReady::Reader reader) {
  return ActorReady{ActorId(reader.getActor()), text(reader.getOwner()), reader.getDead(), read(reader.getError()),
                    ActorId(reader.getNamed())};
}

Result<Call> decode(wire::Call::Reader reader) {
  auto arguments = read(reader.getArguments());
  if (!arguments) return tl::unexpected(std::move(arguments).error());
  Call call{TaskId(reader.getTask()), ActorId(reader.getActor()), read(reader.getFunction()), *std::move(arguments),
            text(reader.getOwner())};
  call.resent = reader.getResent();
  call.kill = reader.getKill();
  call.group = text(reader.getGroup());
  call.fence = reader.getFence();
  if (reader.hasName()) call.name = text(reader.getName());
  call.number = reader.getNumber();
  call.ahead = reader.getAhead();
  call.again = reader.getAgain();
  return call;
}

Frames resent(const transport::Frame& call, int times) {
  auto received = wire::Received::parse(transport::Frame(call));
  PACELINE_CHECK(received, "a call of this process cannot be read");
  Frames frames;
  const auto read = received->visit([&](wire::Envelope::Reader root) {
    return decode(root.getCall()).map([&](Call again) {
      again.resent = times;
      frames = encode(again);
    });
  });
  PACELINE_CHECK(read, "a call of this process cannot be read");
  return frames;
}

/// Where it lies in the frame: the number is known only when nothing can come between it and its place in the order,
/// and a call may be too large to be encoded then.
void set_number(transport::Frame& call, std::uint64_t number) {
  static const std::size_t offset =
      capnp::Schema::from<wire::Call>().getFieldByName("number").getProto().getSlot().getOffset() * sizeof number;
  capnp::FlatArrayMessageReader reader(
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(call.data()), call.size() / sizeof(capnp::word)));
  const auto fields = capnp::AnyStruct::Reader(reader.getRoot<wire::Envelope>().getCall()).getDataSection();
  PACELINE_CHECK(offset + sizeof number <= fields.size(), "an encoded call without room for its number");
  std::memcpy(call.data() + (reinterpret_cast<const std::byte*>(fields.begin()) - call.data()) + offset, &number,
              sizeof number);
}

std::string name_in(const transport::Frame& call) {
  auto received = wire::Received::parse(transport::Frame(call));
  std::string name;
  if (received) (void)received->visit([&](wire::Envelope::Reader root) { name = text(root.getCall().getName()); });
  return name;
}

Result<CallResult> decode(wire::CallResult::Reader reader, std::vector<transport::Frame>& frames) {
  CallResult message{TaskId(reader.getTask()), text(reader.getOwner()),   Bytes{},         reader.getByLine(),
                     reader.getUnbegun(),      ran_of(reader.getRanNs()), reader.getItem()};
  if (!reader.getOk()) {
    message.value = tl::unexpected(read(reader.getError()));
  } else if (frames.size() > 1) {
    message.value = std::move(frames[1]);
  } else {
    message.value = as_vector(reader.getBytes());
  }
  return message;
}

std::optional<Awaited> awaited(wire::Waits::Reader reader) {
  if (!reader.getBegins()) return std::nullopt;
  return Awaited{TaskId(reader.getTask()), ActorId(reader.getActor()), TaskId(reader.getWithin())};
}

std::string line_path_beside(const std::string& agent_address, WorkerId worker) {
  constexpr std::string_view kIpc = "ipc://";
  if (!agent_address.starts_with(kIpc)) return {};
  return line_path(agent_address.substr(kIpc.size(), agent_address.rfind('/') - kIpc.size()), worker);
}

std::string line_path(const std::string& runtime_directory, WorkerId worker) {
  return runtime_directory + "/w" + to_string(worker);
}

std::string to_json(const Release& release) {
  nlohmann::json json{{"actors", nlohmann::json::array()}};
  for (auto actor : release.actors) json["actors"].push_back(actor.value);
  if (release.owner_died) json["owner_died"] = true;
  return json_text(json);
}

Result<Release> release_from_json(const std::string& json) {
  Release release;
  const auto read = contained([&] {
    const auto parsed = parse_json(json);
    for (const auto& actor : parsed.at("actors")) release.actors.emplace_back(actor.get<std::uint64_t>());
    release.owner_died = parsed.value("owner_died", false);
  });
  if (!read) return fail(ErrorKind::invalid, "a release that cannot be read: " + read.error().text);
  return release;
}

}  // namespace paceline::actors
