#include "actors/process_client.h"
#include "runtime/channel/line_transport.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::actors {

Client::TransportFactory process_transport() {
  return [](const std::string& name) -> Result<std::unique_ptr<transport::Transport>> {
    transport::ZmqOptions options;
    options.self = name;
    options.sockets_max = 64;  // It connects to one agent.
    auto below = transport::ZmqTransport::create(std::move(options));
    if (!below) return below;
    return channel::LineTransport::beside(*std::move(below), name);
  };
}

}  // namespace paceline::actors
