#include "actors/output_message.h"

#include <utility>

namespace paceline::actors {

Frames encode(const Output& message) {
  wire::Message out;
  auto builder = out.root().initOutput();
  builder.setTo(message.to);
  builder.setNode(message.node.value);
  builder.setBytes(message.bytes);
  builder.setAll(message.all);
  auto parts = builder.initParts(static_cast<unsigned>(message.parts.size()));
  for (unsigned i = 0; i < parts.size(); ++i) {
    const auto& part = message.parts[i];
    parts[i].setWho(part.who);
    parts[i].setLog(part.log);
    parts[i].setLeftOut(part.left_out);
    parts[i].setLines({reinterpret_cast<const capnp::byte*>(part.lines.data()), part.lines.size()});
  }
  return as_message(out.to_frame());
}

Frames encode(const OutputWanted& message) {
  wire::Message out;
  auto builder = out.root().initOutputWanted();
  builder.setDriver(message.driver);
  builder.setNode(message.node.value);
  builder.setBytes(message.bytes);
  builder.setAll(message.all);
  builder.setGone(message.gone);
  return as_message(out.to_frame());
}

Output decode(wire::Output::Reader reader) {
  Output message{wire::text(reader.getTo()), NodeId{reader.getNode()}, reader.getBytes(), {}, reader.getAll()};
  for (const auto part : reader.getParts()) {
    const auto lines = part.getLines();
    message.parts.push_back({wire::text(part.getWho()), wire::text(part.getLog()), part.getLeftOut(),
                             std::string(reinterpret_cast<const char*>(lines.begin()), lines.size())});
  }
  return message;
}

OutputWanted decode(wire::OutputWanted::Reader reader) {
  return {wire::text(reader.getDriver()), NodeId{reader.getNode()}, reader.getBytes(), reader.getAll(),
          reader.getGone()};
}

}  // namespace paceline::actors
