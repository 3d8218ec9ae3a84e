#include "actors/process_client.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::actors {

Client::TransportFactory process_transport() {
  return [](const std::string& name) {
    transport::ZmqOptions options;
    options.self = name;
    return transport::ZmqTransport::create(std::move(options));
  };
}

}  // namespace paceline::actors
