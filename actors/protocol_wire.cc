#include "actors/protocol_wire.h"

#include <cstring>
#include <utility>

#include "runtime/base/json.h"

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

void write(capnp::List<wire::Argument>::Builder builder, const std::vector<Argument>& arguments) {
  for (unsigned i = 0; i < arguments.size(); ++i) {
    if (const auto* value = std::get_if<Bytes>(&arguments[i])) {
      builder[i].setBytes(as_data(*value));
    } else {
      builder[i].setTask(std::get<TaskId>(arguments[i]).value);
    }
  }
}

Result<std::vector<Argument>> read(capnp::List<wire::Argument>::Reader reader) {
  if (reader.size() > kArgumentsMax) {
    return fail(ErrorKind::invalid, "a call with " + std::to_string(reader.size()) + " arguments; at most " +
                                        std::to_string(kArgumentsMax) + " are possible");
  }
  std::vector<Argument> arguments;
  arguments.reserve(reader.size());
  for (auto argument : reader) {
    if (argument.isTask()) {
      arguments.emplace_back(TaskId(argument.getTask()));
    } else {
      arguments.emplace_back(as_vector(argument.getBytes()));
    }
  }
  return arguments;
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
}

Error read(wire::Failure::Reader reader) { return {kind_named(text(reader.getKind())), text(reader.getText())}; }

Executable decode(wire::Executable::Reader reader) {
  return {wire::raw(reader.getPath()),      read(reader.getArgs()),       read(reader.getEnv()),
          wire::raw(reader.getDirectory()), wire::raw(reader.getBuild()), wire::raw(reader.getLogs())};
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
  return as_message(out.to_frame());
}

Frames encode(const Call& message) {
  wire::Message out;
  auto builder = message.actor.value != 0 ? out.root().initCall() : out.root().initSubmitTask();
  builder.setTask(message.task.value);
  builder.setActor(message.actor.value);
  write(builder.initFunction(), message.function);
  write(builder.initArguments(static_cast<unsigned>(message.arguments.size())), message.arguments);
  if (!message.owner.empty()) builder.setOwner(message.owner);
  if (message.resources == Resources{}) return as_message(out.to_frame());
  auto resources = builder.initResources();
  resources.setCpus(message.resources.cpus);
  resources.setRetries(message.resources.retries);
  return as_message(out.to_frame());
}

Frames encode(CallResult message) {
  wire::Message out;
  auto builder = out.root().initCallResult();
  builder.setTask(message.task.value);
  builder.setOwner(message.owner);
  builder.setByLine(message.by_line);
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

Result<CreateActor> decode(wire::CreateActor::Reader reader) {
  auto arguments = read(reader.getArguments());
  if (!arguments) return tl::unexpected(std::move(arguments).error());
  CreateActor message{ActorId(reader.getActor()), read(reader.getFunction()), *std::move(arguments),
                      text(reader.getName()),     text(reader.getOwner()),    decode(reader.getExecutable())};
  if (message.actor.value == 0) return fail(ErrorKind::invalid, "an actor without an id");
  return message;
}

Result<ActorReady> decode(wire::ActorReady::Reader reader) {
  return ActorReady{ActorId(reader.getActor()), text(reader.getOwner()), reader.getDead(), read(reader.getError())};
}

Result<Call> decode(wire::Call::Reader reader) {
  auto arguments = read(reader.getArguments());
  if (!arguments) return tl::unexpected(std::move(arguments).error());
  const auto resources = reader.getResources();
  return Call{TaskId(reader.getTask()), ActorId(reader.getActor()), read(reader.getFunction()),
              *std::move(arguments),    text(reader.getOwner()),    {resources.getCpus(), resources.getRetries()}};
}

Result<CallResult> decode(wire::CallResult::Reader reader, std::vector<transport::Frame>& frames) {
  CallResult message{TaskId(reader.getTask()), text(reader.getOwner()), Bytes{}, reader.getByLine()};
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
  return Awaited{TaskId(reader.getTask()), ActorId(reader.getActor())};
}

std::string line_path(const std::string& runtime_directory, WorkerId worker) {
  return runtime_directory + "/w" + to_string(worker);
}

std::string to_json(const Release& release) {
  nlohmann::json json{{"actors", nlohmann::json::array()}, {"tasks", nlohmann::json::array()}};
  for (auto actor : release.actors) json["actors"].push_back(actor.value);
  for (auto task : release.tasks) json["tasks"].push_back(task.value);
  return json_text(json);
}

Result<Release> release_from_json(const std::string& json) {
  Release release;
  const auto read = contained([&] {
    const auto parsed = parse_json(json);
    for (const auto& actor : parsed.at("actors")) release.actors.emplace_back(actor.get<std::uint64_t>());
    for (const auto& task : parsed.at("tasks")) release.tasks.emplace_back(task.get<std::uint64_t>());
  });
  if (!read) return fail(ErrorKind::invalid, "a release that cannot be read: " + read.error().text);
  return release;
}

}  // namespace paceline::actors
