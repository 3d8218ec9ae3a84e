#include "scheduler/record/record_file.h"

#include <utility>

#include "runtime/observe/byte_file.h"
#include "runtime/observe/read_file.h"
#include "scheduler/record/decision_codec.h"

namespace paceline::scheduler {
namespace {

constexpr std::string_view kMagic = "paceline decisions 1\n";
constexpr std::size_t kBlockHead = 8;
constexpr std::size_t kBufferMax = 64 * 1024;
constexpr Duration kFlushEvery = std::chrono::seconds(1);

/// FNV-1a.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t sum = 2166136261U;
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
  return sum;
}

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

std::string block(std::string_view contents) {
  std::string bytes;
  put_u32(bytes, static_cast<std::uint32_t>(contents.size()));
  put_u32(bytes, checksum(contents));
  return bytes.append(contents);
}

}  // namespace

std::string record_path(const std::string& run_directory, NodeId node) {
  return run_directory + "/decisions-" + to_string(node) + ".bin";
}

struct RecordWriter::File {
  observe::ByteFile bytes;
  DecisionContext context = {};
  std::string buffer = "d";
  std::int64_t count = 0;
  Instant flushed{};
  bool over = false;  ///< Finished, or the disk is full.

  explicit File(observe::ByteFile file) : bytes(std::move(file)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { flush(); }

  void write(std::string_view what) { over = over || !bytes.write(what); }
  void flush() {
    if (buffer.size() > 1) write(block(buffer));
    buffer.resize(1);
  }
};

Result<RecordWriter> RecordWriter::create(const std::string& path, const std::string& head) {
  auto file = observe::ByteFile::create(path);
  if (!file) return tl::unexpected(file.error());
  RecordWriter writer(std::make_unique<File>(std::move(*file)));
  writer.file_->write(std::string(kMagic) + block("h" + head));
  return writer;
}

RecordWriter::RecordWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}
RecordWriter::RecordWriter(RecordWriter&&) noexcept = default;
RecordWriter& RecordWriter::operator=(RecordWriter&&) noexcept = default;
RecordWriter::~RecordWriter() = default;

void RecordWriter::add(const Decision& decision) {
  File& file = *file_;
  if (file.over) return;
  encode(decision, file.context, file.buffer);
  if (file.count++ == 0) file.flushed = file.context.at;
  const Instant due = file.flushed > Instant::max() - kFlushEvery ? Instant::max() : file.flushed + kFlushEvery;
  if (file.buffer.size() < kBufferMax && file.context.at < due) return;
  file.flushed = file.context.at;
  file.flush();
}

void RecordWriter::flush() {
  if (!file_->over) file_->flush();
}

void RecordWriter::finish() {
  File& file = *file_;
  file.flush();
  std::string end = "e";
  put_u32(end, static_cast<std::uint32_t>(file.count));
  file.write(block(end));
  file.over = true;
}

namespace {

Result<Record> read(const std::string& path, bool may_be_cut) {
  const auto read = observe::read_file(path, observe::kRecordBytesMax);
  if (!read) return tl::unexpected(read.error());
  const std::string& bytes = *read;
  const auto refuse = [&](const std::string& why) { return fail(ErrorKind::invalid, path + " " + why); };
  const std::string half = "is half written: its run has not come to its end, or was cut off";
  std::string_view rest = bytes;
  if (rest.size() < kMagic.size()) return refuse(half);
  if (!rest.starts_with(kMagic)) return refuse("is no record of decisions, or of another version of Paceline");
  rest.remove_prefix(kMagic.size());

  Record record;
  const auto cut = [&](bool before_the_head) -> Result<Record> {
    if (!may_be_cut || before_the_head) return refuse(half);
    record.ended = false;
    return std::move(record);
  };
  DecisionContext context;
  for (bool first = true;; first = false) {
    if (rest.size() < kBlockHead) return cut(first);
    const std::size_t size = get_u32(rest);
    const std::uint32_t sum = get_u32(rest.substr(4));
    if (size > rest.size() - kBlockHead) return cut(first);
    const std::string_view contents = rest.substr(kBlockHead, size);
    rest.remove_prefix(kBlockHead + size);
    if (contents.empty() || checksum(contents) != sum) return refuse("is damaged: replay another run");
    const std::string_view inside = contents.substr(1);
    if ((contents[0] == 'h') != first) return refuse("is damaged: replay another run");
    if (contents[0] == 'h') {
      record.head = inside;
    } else if (contents[0] == 'd') {
      if (!decode(inside, context, record.decisions)) return refuse("is damaged: replay another run");
    } else {
      const bool whole = contents[0] == 'e' && inside.size() == 4 && rest.empty() &&
                         get_u32(inside) == static_cast<std::uint32_t>(record.decisions.size());
      if (!whole) return refuse("is damaged: replay another run");
      return record;
    }
  }
}

}  // namespace

Result<Record> read_record(const std::string& path) { return read(path, false); }

Result<Record> read_record_of_killed(const std::string& path) { return read(path, true); }

}  // namespace paceline::scheduler
