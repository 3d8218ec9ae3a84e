#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/event_loop.h"
#include "runtime/channel/ring_channel.h"
#include "runtime/process/fd.h"

namespace paceline::channel {

/// Channels between named processes of a host that nobody stands between: one listens on a Unix socket, another
/// connects to it and hands over its end of a channel. The socket then says nothing more than that the other process
/// lives: its end is the line's end, however it came.
///
/// A line of one's own making goes *out*, to who is called; one that was accepted came *in*. Two processes that call
/// each other have one of each. Nothing ever blocks: what a line has no room for, or is too large, is the caller's to
/// send otherwise or later. Owned by one thread at a time, but for send_out() and send_in().
class Lines {
  struct Line;
  using Map = std::map<std::string, std::shared_ptr<Line>>;

 public:
  struct Listener {
    std::function<void(const std::string& peer, Message message)> called;    ///< By a line that came in.
    std::function<void(const std::string& peer, Message message)> answered;  ///< By one that went out.
    /// A line that went out has ended; what came before it has been told. Of what was sent the other end has not taken
    /// the last `untaken` messages, and begun nothing of them.
    std::function<void(const std::string& peer, std::size_t untaken)> ended;
    /// The same of a line that came in; may be nobody.
    std::function<void(const std::string& peer)> left{};
  };
  static constexpr std::size_t kOutMax = 64;
  static constexpr std::size_t kInMax = 128;
  static constexpr std::size_t kMessageMax = 16 << 10;  ///< Bytes; larger ones have to go another way.
  static constexpr std::size_t kRingBytes = 128 << 10;  ///< Each way.

  /// `self`: this process's name for others, 1 to 255 bytes.
  static Result<std::unique_ptr<Lines>> create(std::string self, Listener listener);
  ~Lines();
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  /// From here on others can connect. The file at `path` (in a directory of ours) is whoever's that removes it.
  Result<void> listen(const std::string& path);
  /// `disconnected`: nobody listens there; `overloaded`: kOutMax lines are open.
  Result<void> connect(const std::string& peer, const std::string& path);

  /// Any thread. False: no such line, no room, or too large; then nothing was sent.
  bool send_out(const std::string& peer, std::span<const Frame> message) { return send(out_, peer, message); }
  bool send_in(const std::string& peer, std::span<const Frame> message) { return send(in_, peer, message); }
  /// Any thread. Whether there is such a line.
  bool has_out(const std::string& peer) { return find(out_, peer) != nullptr; }

  /// Tells all that lies in the lines of this peer.
  void hear_out(const std::string& peer);
  /// Its lines end here, and nothing more is told of them.
  void drop(const std::string& peer);

  /// A thread that waits for what comes by some lines looks at them itself while it has this: until it goes, nobody is
  /// woken for them. Of the thread that owns the lines meanwhile.
  class Watch {
   public:
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();
    /// Tells what has come.
    void look();
    /// It goes, and still nobody is woken: somebody will soon look again, or call rest().
    void leave();
    bool empty() const { return watched_.empty(); }

   private:
    friend class Lines;
    struct Watched {
      Map* map;
      std::string peer;
      std::shared_ptr<Line> line;
    };
    Watch(Lines& lines, std::vector<Watched> watched) : lines_(lines), watched_(std::move(watched)) {}
    Lines& lines_;
    std::vector<Watched> watched_;
  };
  /// Of all lines, unless they are more than `most`.
  Watch watch(std::size_t most);
  /// Tells what has come by any line; from here on the descriptor becomes readable for all of them.
  void rest();

  /// Readable while serve() has something to do.
  int descriptor() const { return loop_.descriptor(); }
  void serve();

 private:
  Lines(std::string self, Listener listener, EventLoop loop);

  bool send(const Map& lines, const std::string& peer, std::span<const Frame> message);
  Result<void> add(Map& lines, const std::string& peer, std::unique_ptr<RingChannel> channel, process::Fd socket);
  std::shared_ptr<Line> find(const Map& lines, const std::string& peer);
  bool hear(Map& lines, const std::string& peer);
  void tell(const Map& lines, const std::string& peer, Message& message);
  void end(Map& lines, const std::string& peer);
  void remove(Map& lines, const std::string& peer, const Line& line);
  void accept();
  void on_first_word(int socket);

  const std::string self_;
  const Listener listener_;
  EventLoop loop_;
  process::Fd listening_;
  std::map<int, process::Fd> accepted_;  ///< That have not said who they are.
  std::mutex mutex_;                     ///< Of the maps; only the owning thread changes them.
  Map out_, in_;
};

}  // namespace paceline::channel
