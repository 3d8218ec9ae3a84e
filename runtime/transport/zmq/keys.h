#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/result.h"

namespace paceline::transport {

/// A CURVE key pair, each half 40 characters of Z85.
struct CurveKeys {
  std::string public_key;
  std::string secret_key;
  bool operator==(const CurveKeys&) const = default;
};

/// A fresh pair from libsodium. `internal` if ZeroMQ was built without CURVE.
Result<CurveKeys> make_curve_keys();

/// Who has these is in the cluster: `server` proves to a client that it speaks to the cluster, `client` is the one key
/// that servers admit. An endpoint that only connects can do without `server.secret_key`.
struct ClusterKeys {
  CurveKeys server;
  CurveKeys client;
  bool operator==(const ClusterKeys&) const = default;
};

Result<ClusterKeys> make_cluster_keys();

/// Writes with mode 0600, whole or not at all (a temporary file beside it, then rename).
Result<void> write_keys(const std::filesystem::path& path, const ClusterKeys& keys);

/// `not_found` if there is no such file; `invalid` if others may read it (says chmod), if it is not ours, or damaged
/// (each public key is compared with what its secret key gives).
Result<ClusterKeys> read_keys(const std::filesystem::path& path);

}  // namespace paceline::transport
