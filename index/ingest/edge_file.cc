// Edge files. The reader handles one file after another (Read), as the plan says: ids in memory,
// .npy, text lines, or entries of a matrix. It passes the ends to an IdCollector and appends type,
// weight and attributes to an IngestedEdges, or to a spill file of blocks (SpillTo). An edge that
// an EdgeSplitter holds out goes there instead (HoldsOut).

#include "index/ingest/edge_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "index/delta/graph_parts.h"
#include "index/ingest/ingest_memory.h"
#include "index/input/convert.h"
#include "index/input/npy.h"
#include "index/input/number.h"
#include "index/input/table_reader.h"
#include "index/input/table_writer.h"
#include "index/input/value_column.h"
#include "rhizome/graph_types.h"
#include "storage/array/array_facts.h"
#include "storage/base/check.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kReadEdgesPhase = "read edges";
constexpr std::string_view kWeight = "weight";
constexpr std::string_view kTime = "time";
constexpr std::string_view kOnlyType = "edge";
constexpr std::size_t kNpyBlockEdges = std::size_t{1} << 16;
constexpr std::uint64_t kSpoolBlockBytes = std::uint64_t{512} << 10;

/// The position of each column in a line. Attributes are in the order of IngestOptions::columns.
struct Columns {
  std::size_t count = 0;
  std::size_t src = 0;
  std::size_t dst = 0;
  std::optional<std::size_t> type;
  std::optional<std::size_t> weight;
  std::vector<std::size_t> attributes;
};

bool IsAttribute(std::string_view name) {
  return name != "src" && name != "dst" && name != "type" && name != kWeight && name != "-";
}

Columns FindColumns(const FilePlan& plan, const std::vector<std::string>& attributes) {
  Columns columns;
  columns.count = plan.columns.size();
  columns.attributes.resize(attributes.size());
  for (std::size_t i = 0; i < plan.columns.size(); ++i) {
    const std::string& role = plan.columns[i].role;
    if (role == "src") columns.src = i;
    if (role == "dst") columns.dst = i;
    if (role == "type") columns.type = i;
    if (role == "weight") columns.weight = i;
    const auto attribute = std::find(attributes.begin(), attributes.end(), role);
    if (attribute != attributes.end())
      columns.attributes[static_cast<std::size_t>(attribute - attributes.begin())] = i;
  }
  return columns;
}

/// Rows from an EdgeArrayFile, and the index of their attribute; without an index they are the
/// weights.
struct EdgeArray {
  EdgeRows rows;
  std::optional<std::size_t> attribute;
};

/// Returns the value of a row of an edge array with one column, as text.
std::string EdgeValueText(const EdgeArrayFile& array, std::span<const std::byte> row) {
  std::string text;
  if (array.texts) {
    std::int64_t code = 0;
    std::memcpy(&code, row.data(), sizeof(code));
    if (code >= 0 && static_cast<std::size_t>(code) < array.texts->size())
      text = (*array.texts)[static_cast<std::size_t>(code)];
    return text;
  }
  AppendValue({.dtype = array.dtype,
               .null = NullOf(array.attributes),
               .type = std::string(TypeOf(array.attributes))},
              row, text);
  return text;
}

/// Returns the type that the user gives a column; CheckEdgeColumns has checked it.
std::optional<GivenType> TypeOfColumn(const IngestOptions& options, const std::string& name) {
  const auto type = ColumnTypeOf(options.types, name);
  return type ? *type : std::nullopt;
}

class EdgeReader {
 public:
  EdgeReader(IngestContext& context, IdCollector& ids, EdgeSplitter* splitter)
      : context_(context), ids_(ids), splitter_(splitter) {
    RHIZOME_CHECK(context.plan != nullptr);
    for (const std::string& type : context.options.edge_types) table_.type_names.Add(type);
    table_.columns.attributes = EdgeAttributesOf(context.options);
    for (const std::string& name : context.options.columns) {
      if (!IsAttribute(name)) continue;
      attribute_names_.push_back(name);
      const auto type = TypeOfColumn(context.options, name);
      const bool is_text = type && type->is_text;
      inferred_.emplace_back(is_text ? std::nullopt : type);
      texts_.push_back(is_text ? std::optional<TextCodes>(std::in_place) : std::nullopt);
    }
    staged_texts_.resize(texts_.size());
    std::size_t attribute = inferred_.size();
    for (const EdgeArrayFile& array : context.options.edge_arrays) {
      const bool weight = array.name == kWeight;
      arrays_.push_back({EdgeRows(context.fs, array),
                         weight ? std::nullopt : std::optional<std::size_t>(attribute++)});
      if (array.texts) AddTexts(array);
    }
  }

  /// Spills the columns other than the ids, if there are any.
  Status SpillTo(SpillSpace& space) {
    const std::uint64_t row_bytes = ColumnBytes(context_.options);
    if (row_bytes == 0) return Status::Ok();
    spool_block_edges_ = SpoolBlockEdges(row_bytes);
    RHIZOME_ASSIGN_OR_RETURN(spool_, EdgeSpoolWriter::Create(space, spool_block_edges_));
    spool_->edges.attributes = table_.columns.attributes;
    return Status::Ok();
  }

  // Reads one edge file: sets its type, opens the rows of its edge arrays, adds its edges
  // (ReadContent), and checks their number.
  Status Read(const EdgeFile& file) {
    file_ = &file;
    plan_ = &context_.plan->edges[number_];
    columns_ = FindColumns(*plan_, attribute_names_);
    file_edges_ = 0;
    reserved_ = false;
    if (!file.type.empty()) {
      if (const auto reason = table_.type_names.Refuse(file.type))
        return Status::InvalidArgument(fmt::format("{}: {}", file.path.string(), *reason));
      file_type_ = table_.type_names.Add(file.type);
    }
    for (EdgeArray& array : arrays_) RHIZOME_RETURN_IF_ERROR(array.rows.BeginFile(number_));
    RHIZOME_RETURN_IF_ERROR(ReadContent(file));
    RHIZOME_RETURN_IF_ERROR(failed_);
    const bool last = ++number_ == context_.options.edges.size();
    for (EdgeArray& array : arrays_) RHIZOME_RETURN_IF_ERROR(array.rows.EndFile(last));
    if (!file.edges || *file.edges == file_edges_) return Status::Ok();
    return Status::InvalidArgument(fmt::format("{}: {} edges are expected, but there are {}",
                                               file.path.string(), *file.edges, file_edges_));
  }

  Result<IngestedEdges> TakeTable() && {
    RHIZOME_RETURN_IF_ERROR(failed_);
    RHIZOME_RETURN_IF_ERROR(ids_.status());
    EdgeList& columns = spool_ ? spool_->edges : table_.columns;
    for (std::size_t a = 0; a < inferred_.size(); ++a) {
      EdgeAttribute& attribute = columns.attributes[a];
      if (texts_[a]) {
        attribute.attributes = {{std::string(kTypeAttribute), std::string(kTypeText)}};
        table_.text_bytes += texts_[a]->memory_bytes();
        table_.texts[attribute.name()] = (*std::move(texts_[a])).Sort();
        continue;
      }
      inferred_[a].Finish(attribute.values());
      attribute.attributes = inferred_[a].Attributes(attribute.dtype());
      context_.AddNotes(inferred_[a].Notes(attribute.name()));
    }
    RHIZOME_RETURN_IF_ERROR(MarkTextsOfArrays(columns));
    if (spool_) {
      table_.columns.attributes = spool_->edges.attributes;
      RHIZOME_ASSIGN_OR_RETURN(table_.spool, spool_->Finish(block_edges_));
      for (EdgeAttribute& attribute : table_.columns.attributes) attribute.Clear();
    }
    return std::move(table_);
  }

 private:
  /// Marks the edge arrays that are codes of texts (EdgeArrayFile::texts).
  Status MarkTextsOfArrays(EdgeList& columns) {
    for (const EdgeArrayFile& array : context_.options.edge_arrays) {
      if (!array.texts) continue;
      if (array.dtype != DataType::kInt64 || array.name == kWeight)
        return Status::InvalidArgument(
            fmt::format("edge attribute '{}': codes of texts must be int64, but it is {}",
                        array.name, DataTypeName(array.dtype)));
      const auto attribute = std::find_if(
          columns.attributes.begin(), columns.attributes.end(),
          [&](const EdgeAttribute& candidate) { return candidate.name() == array.name; });
      attribute->attributes = {{std::string(kTypeAttribute), std::string(kTypeText)}};
    }
    return Status::Ok();
  }

  Status ReadContent(const EdgeFile& file) {
    switch (plan_->format) {
      case InputFormat::kMemory:
        return ReadSpans(file);
      case InputFormat::kNpy:
        return ReadNpy(file);
      case InputFormat::kMatrixMarket:
        return ReadMatrix();
      case InputFormat::kZarr:
      case InputFormat::kText:
        break;
    }
    return ReadLines([this](const auto& fields) { return TakeLine(fields); });
  }

  Status ReadSpans(const EdgeFile& file) {
    RHIZOME_RETURN_IF_ERROR(CheckSpans(file));
    const EdgeSpans& edges = *file.spans;
    for (std::size_t done = 0; done < edges.size();) {
      const std::size_t end = std::min(edges.size(), done + kNpyBlockEdges);
      for (; done < end; ++done) RHIZOME_RETURN_IF_ERROR(AddOf(edges, done));
      RHIZOME_RETURN_IF_ERROR(failed_);
      RHIZOME_RETURN_IF_ERROR(ids_.status());
      RHIZOME_RETURN_IF_ERROR(
          context_.Progress(kReadEdgesPhase, {file.path, done, edges.size()}, OwnBytes()));
    }
    return Status::Ok();
  }

  Status CheckSpans(const EdgeFile& file) const {
    const auto refuse = [&](std::string_view reason) {
      return Status::InvalidArgument(fmt::format("{}: {}", file.path.string(), reason));
    };
    if (context_.options.columns.size() != 2)
      return refuse("edges in memory have only the columns src and dst");
    const EdgeSpans& edges = *file.spans;
    if (edges.src.integers.size() != edges.dst.integers.size() ||
        edges.src.texts.size() != edges.dst.texts.size())
      return refuse(fmt::format(
          "{} sources and {} targets, or ids of two kinds; give as many of each, of one kind",
          edges.src.size(), edges.dst.size()));
    if (!edges.src.integers.empty() && !edges.src.texts.empty())
      return refuse("a list has ids of two kinds");
    if (file.src && !edges.src.texts.empty()) return refuse("texts are no numbers in a range");
    return Status::Ok();
  }

  Status AddOf(const EdgeSpans& edges, std::size_t i) {
    if (edges.src.texts.empty()) return AddPair(edges.src.integers[i], edges.dst.integers[i]);
    if (splitter_ != nullptr) splitter_->Begin();
    const std::string_view src = edges.src.texts[i];
    const std::string_view dst = edges.dst.texts[i];
    if (const auto reason = RefuseEnds(src, dst))
      return Status::InvalidArgument(
          fmt::format("{}: edge {}: {}", file_->path.string(), i, *reason));
    const bool held = splitter_ != nullptr && HoldsOut(src, dst, {});
    AddTexts(src, dst);
    if (!held) NoteEdge();
    return Status::Ok();
  }

  template <typename TakeFields>
  Status ReadLines(TakeFields take) {
    return context_.ReadLines(
        plan_->path, plan_->dialect, plan_->header, kReadEdgesPhase, take,
        [this] { return OwnBytes(); },
        [this](const TableReader& reader) {
          ReserveRest(reader);
          return failed_.ok() ? ids_.status() : failed_;
        });
  }

  /// Once a part of a text file is read, reserves memory for the edges of the rest, so that columns
  /// do not move as they grow.
  void ReserveRest(const TableReader& reader) {
    const double share = reader.ShareRead();
    if (reserved_ || share == 0) return;
    reserved_ = true;
    constexpr double kMargin = 1.02;
    const double rest = kMargin * (1 - share) / share * static_cast<double>(file_edges_);
    ReserveEdges(rest, reader.stream());
  }

  /// Reserves memory for edges: at most one for each byte of the file, because a header may be
  /// wrong.
  void ReserveEdges(double edges, const InputStream& stream) {
    ids_.ReserveEdges(
        static_cast<std::uint64_t>(std::min(edges, static_cast<double>(stream.total_bytes()))));
  }

  Status ReadMatrix() {
    std::uint64_t entries = 0;
    RHIZOME_RETURN_IF_ERROR(ReadLines([&](const auto& fields) {
      ++entries;
      return TakeEntry(fields);
    }));
    if (entries == plan_->matrix_entries) return Status::Ok();
    return Status::InvalidArgument(fmt::format("{}: {} entries are expected, but there are {}",
                                               plan_->path.string(), plan_->matrix_entries,
                                               entries));
  }

  Status ReadNpy(const EdgeFile& file) {
    if (context_.options.columns.size() != 2)
      return Status::InvalidArgument(fmt::format(
          "{}: a .npy edge file has only the columns src and dst, but `columns` names {}",
          file.path.string(), fmt::join(context_.options.columns, ",")));
    RHIZOME_ASSIGN_OR_RETURN(auto opened, OpenNpyEdges(context_.fs, file));
    const auto& reader = opened.reader;
    const NpyHeader& header = reader->header();
    // In Fortran order the two axes of the shape are exchanged.
    const bool apart = opened.sources_first != header.fortran_order;
    const std::uint64_t edges = opened.edges();
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(edges, 16, &bytes)) bytes = ~std::uint64_t{0};
    if (!context_.spills())
      RHIZOME_RETURN_IF_ERROR(context_.CheckMemory(file.path.string(), bytes));
    // Sources and destinations in separate rows are read in parallel, the destinations by a second
    // reader.
    std::unique_ptr<NpyReader> ends;
    if (apart) {
      RHIZOME_ASSIGN_OR_RETURN(auto second, OpenNpyEdges(context_.fs, file));
      ends = std::move(second.reader);
      RHIZOME_RETURN_IF_ERROR(ends->Skip(edges * DataTypeBytes(header.dtype)));
    }
    const std::vector<std::string>& columns = context_.options.columns;
    const std::size_t src = !file.src && columns.front() == "dst" ? 1 : 0;
    std::vector<std::int64_t> pairs;
    ReserveEdges(static_cast<double>(edges), reader->stream());
    for (std::uint64_t done = 0; done < edges;) {
      const std::uint64_t count = std::min<std::uint64_t>(kNpyBlockEdges, edges - done);
      if (apart) {
        RHIZOME_RETURN_IF_ERROR(ReadNumbers(*reader, count, sources_));
        RHIZOME_RETURN_IF_ERROR(ReadNumbers(*ends, count, ends_));
        for (std::size_t i = 0; i < count; ++i)
          RHIZOME_RETURN_IF_ERROR(src == 0 ? AddPair(sources_[i], ends_[i])
                                           : AddPair(ends_[i], sources_[i]));
      } else {
        RHIZOME_RETURN_IF_ERROR(ReadNumbers(*reader, 2 * count, pairs));
        for (std::size_t i = 0; i < pairs.size(); i += 2)
          RHIZOME_RETURN_IF_ERROR(AddPair(pairs[i + src], pairs[i + 1 - src]));
      }
      done += count;
      RHIZOME_RETURN_IF_ERROR(failed_);
      RHIZOME_RETURN_IF_ERROR(ids_.status());
      RHIZOME_RETURN_IF_ERROR(Progress(reader->stream()));
    }
    return ends ? ends->Finish() : reader->Finish();
  }

  /// Reads the next integers of a .npy file of any integer type.
  Status ReadNumbers(NpyReader& reader, std::uint64_t count, std::vector<std::int64_t>& out) {
    out.resize(count);
    const DataType dtype = reader.header().dtype;
    if (dtype == DataType::kInt64) return reader.Read(std::as_writable_bytes(std::span(out)));
    block_.resize(count * DataTypeBytes(dtype));
    RHIZOME_RETURN_IF_ERROR(reader.Read(block_));
    static_cast<void>(
        ConvertElements(dtype, block_, DataType::kInt64, std::as_writable_bytes(std::span(out))));
    return Status::Ok();
  }

  Status AddPair(std::int64_t src, std::int64_t dst) {
    if (splitter_ != nullptr) splitter_->Begin();
    if (file_->src && (!InRange(src, *file_->src) || !InRange(dst, *file_->dst)))
      return Status::InvalidArgument(fmt::format("{}: edge {}: {} to {}: {}", file_->path.string(),
                                                 file_edges_, src, dst, kOutOfRange));
    const bool held = splitter_ != nullptr && HoldsOutNumbers(src, dst, {});
    AddShifted(src, dst);
    if (!held) NoteEdge();
    return Status::Ok();
  }

  static constexpr std::string_view kOutOfRange =
      "an id is not below the declared number of vertices";
  static bool InRange(std::int64_t id, const IdRange& range) {
    return id >= 0 && static_cast<std::uint64_t>(id) < range.count;
  }

  void AddShifted(std::int64_t src, std::int64_t dst) {
    if (file_->src) {
      src += static_cast<std::int64_t>(file_->src->first);
      dst += static_cast<std::int64_t>(file_->dst->first);
    }
    if (context_.options.end_types.empty()) return ids_.AddEdge(src, dst);
    AddTexts(fmt::format_int(src).str(), fmt::format_int(dst).str());
  }

  /// Adds two ends, with the types of ends, if there are any: "user:7".
  void AddTexts(std::string_view src, std::string_view dst) {
    const std::vector<std::string>& types = context_.options.end_types;
    if (types.empty()) return ids_.AddEdge(src, dst);
    JoinTypedId(types[0], src, typed_src_);
    JoinTypedId(types[1], dst, typed_dst_);
    ids_.AddEdge(typed_src_, typed_dst_);
  }

  /// Asks the splitter about an edge whose columns are staged; `fields` is its line, empty if it
  /// has none. Returns whether it is held out: then its ids must be added, but none of its columns.
  bool HoldsOut(std::string_view src, std::string_view dst,
                std::span<const std::string_view> fields) {
    if (!failed_.ok()) return false;
    const std::vector<std::string>& types = context_.options.end_types;
    ExternalEdge edge{.src = src, .dst = dst, .type = TypeName(fields)};
    if (!types.empty()) {
      JoinTypedId(types[0], src, typed_src_);
      JoinTypedId(types[1], dst, typed_dst_);
      edge.src = typed_src_;
      edge.dst = typed_dst_;
    }
    const Result<EdgeSplit> split = splitter_->SplitOf(edge);
    if (!split) {
      failed_ = split.error();
      return false;
    }
    if (*split == EdgeSplit::kTrain) {
      splitter_->Keep();
      return false;
    }
    ++file_edges_;
    failed_ = TakeValues(fields, edge);
    if (failed_.ok()) failed_ = splitter_->HoldOut(*split, edge, values_);
    return true;
  }

  /// As HoldsOut, for the numbers of the file.
  bool HoldsOutNumbers(std::int64_t src, std::int64_t dst,
                       std::span<const std::string_view> fields) {
    if (file_->src) {
      src += static_cast<std::int64_t>(file_->src->first);
      dst += static_cast<std::int64_t>(file_->dst->first);
    }
    const fmt::format_int src_text(src);
    const fmt::format_int dst_text(dst);
    return HoldsOut({src_text.data(), src_text.size()}, {dst_text.data(), dst_text.size()}, fields);
  }

  /// Returns the name of the type of an edge.
  std::string_view TypeName(std::span<const std::string_view> fields) const {
    if (columns_.type && !fields.empty()) return fields[*columns_.type];
    if (!file_->type.empty()) return file_->type;
    const std::vector<std::string>& first = context_.options.edge_types;
    return first.empty() ? kOnlyType : std::string_view(first.front());
  }

  /// Sets `values_` to the columns of a held-out edge as text, and the time of `edge`, and consumes
  /// its rows of edge arrays.
  Status TakeValues(std::span<const std::string_view> fields, ExternalEdge& edge) {
    values_.clear();
    if (!fields.empty() && columns_.weight) values_.emplace_back(fields[*columns_.weight]);
    for (std::size_t a = 0; a < attribute_names_.size() && !fields.empty(); ++a) {
      values_.emplace_back(fields[columns_.attributes[a]]);
      if (attribute_names_[a] == kTime) edge.time = inferred_[a].staged_integer();
    }
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      RHIZOME_ASSIGN_OR_RETURN(const auto row, arrays_[a].rows.Take());
      const EdgeArrayFile& array = context_.options.edge_arrays[a];
      if (array.dim == 1) values_.push_back(EdgeValueText(array, row));
      if (array.name == kTime) std::memcpy(&edge.time, row.data(), sizeof(edge.time));
    }
    return Status::Ok();
  }

  /// Counts an edge whose ends and columns were added, and adds its file's type and its rows of
  /// edge arrays.
  void NoteEdge() {
    ++file_edges_;
    EdgeList& columns = spool_ ? spool_->edges : table_.columns;
    if (!file_->type.empty()) columns.type.push_back(file_type_);
    for (EdgeArray& array : arrays_) {
      if (!failed_.ok()) return;
      failed_ = array.attribute ? array.rows.AppendTo(columns.attributes[*array.attribute])
                                : array.rows.AppendTo(columns.weight);
    }
    if (spool_ && ++block_edges_ == spool_block_edges_) {
      block_edges_ = 0;
      if (failed_.ok()) failed_ = spool_->Flush(spool_block_edges_);
    }
  }

  /// Adds the edge of an entry "row column [value]" of a matrix, counted from 1, and of the entry
  /// that symmetry implies. If the line is malformed, adds nothing and returns the reason.
  std::optional<std::string> TakeEntry(std::span<const std::string_view> fields) {
    if (fields.size() != columns_.count)
      return fmt::format("{} numbers found, {} expected", fields.size(), columns_.count);
    const auto row = ParseCanonicalInteger(fields[0]);
    const auto column = ParseCanonicalInteger(fields[1]);
    const auto within = [](const std::optional<std::int64_t>& number, std::uint64_t most) {
      return number && *number >= 1 && static_cast<std::uint64_t>(*number) <= most;
    };
    if (!within(row, plan_->matrix_rows) || !within(column, plan_->matrix_columns))
      return fmt::format("'{} {}' is not an entry of a matrix of {} x {}, counted from 1",
                         fields[0], fields[1], plan_->matrix_rows, plan_->matrix_columns);
    entry_.assign(fields.begin(), fields.end());
    const fmt::format_int first(*row - 1);
    const fmt::format_int second(*column - 1);
    entry_[0] = {first.data(), first.size()};
    entry_[1] = {second.data(), second.size()};
    if (auto reason = TakeLine(entry_)) return reason;
    const bool skew = plan_->symmetry == "skew-symmetric";
    const bool mirrored = skew || (plan_->symmetry == "symmetric" && !context_.options.undirected);
    if (!mirrored || *row == *column) return std::nullopt;
    std::swap(entry_[0], entry_[1]);
    std::string negative;
    if (skew && columns_.count > 2) {
      negative = entry_[2].starts_with('-') ? entry_[2].substr(1) : fmt::format("-{}", entry_[2]);
      entry_[2] = negative;
    }
    return TakeLine(entry_);
  }

  /// Adds the line's edge. If the line is malformed, adds nothing and returns the reason.
  std::optional<std::string> TakeLine(std::span<const std::string_view> fields) {
    if (splitter_ != nullptr) splitter_->Begin();
    if (fields.size() != columns_.count)
      return WrongFieldCount(fields.size(), columns_.count, "`columns`");
    const std::string_view src = fields[columns_.src];
    const std::string_view dst = fields[columns_.dst];
    if (auto reason = RefuseEnds(src, dst)) return reason;
    std::optional<float> weight;
    if (columns_.weight) {
      weight = ParseFiniteFloat(fields[*columns_.weight]);
      if (!weight)
        return fmt::format("the weight '{}' is not a finite number", fields[*columns_.weight]);
      if (*weight == 0 && VanishesInFloat32(fields[*columns_.weight]))
        return fmt::format("the weight '{}' {}", fields[*columns_.weight], kVanishes);
    }
    if (columns_.type)
      if (auto reason = table_.type_names.Refuse(fields[*columns_.type])) return reason;
    for (std::size_t a = 0; a < columns_.attributes.size(); ++a)
      if (auto reason = Stage(fields[columns_.attributes[a]], a)) return reason;
    const TypeId type = columns_.type ? table_.type_names.Add(fields[*columns_.type]) : TypeId{0};
    const bool held =
        splitter_ != nullptr && (file_->src ? HoldsOutNumbers(staged_src_, staged_dst_, fields)
                                            : HoldsOut(src, dst, fields));
    if (!held) AddColumns(type, weight);
    if (file_->src)
      AddShifted(staged_src_, staged_dst_);
    else
      AddTexts(src, dst);
    if (ids_.texts()) context_.NoteTexts(src, dst);
    if (!held) NoteEdge();
    return std::nullopt;
  }

  /// Adds the columns of a line, whose attributes are staged.
  void AddColumns(TypeId type, std::optional<float> weight) {
    EdgeList& columns = spool_ ? spool_->edges : table_.columns;
    if (columns_.type) columns.type.push_back(type);
    if (weight) columns.weight.push_back(*weight);
    for (std::size_t a = 0; a < inferred_.size(); ++a) Keep(a, columns.attributes[a].values());
  }

  std::optional<std::string> RefuseEnds(std::string_view src, std::string_view dst) {
    if (!file_->src) {
      if (auto reason = ids_.Refuse(src)) return reason;
      return ids_.Refuse(dst);
    }
    const auto source = ParseCanonicalInteger(src);
    const auto end = ParseCanonicalInteger(dst);
    if (!source || !end) return fmt::format("'{}' is not a vertex number", source ? dst : src);
    if (!InRange(*source, *file_->src) || !InRange(*end, *file_->dst))
      return fmt::format("{} to {}: {}", src, dst, kOutOfRange);
    staged_src_ = *source;
    staged_dst_ = *end;
    return std::nullopt;
  }

  std::optional<std::string> Stage(std::string_view field, std::size_t attribute) {
    const std::string& name = attribute_names_[attribute];
    ValueColumn& column = inferred_[attribute];
    staged_texts_[attribute].reset();
    if (texts_[attribute]) return StageText(field, name, attribute);
    if (auto reason = column.Stage(field, name)) {
      if (ParseDouble(field) || IsDecimal(field) || name == kTime) return reason;
      if (column.kind() == ValueColumn::Kind::kNothing) return StageText(field, name, attribute);
      return fmt::format("{}, or give the column the type text (`types`)", *reason);
    }
    if (name != kTime || !(column.staged_null() || column.staged_float())) return std::nullopt;
    return fmt::format(
        "the time '{}' is neither an integer (such as seconds since 1970) nor a date or time (such "
        "as 2024-05-01T12:30:00Z)",
        field);
  }

  /// Adds the texts of an array of codes, which are checked when they are written.
  void AddTexts(const EdgeArrayFile& array) {
    AttributeTexts texts{.write = WriterOf(array.texts)};
    texts.codes.resize(array.texts->size());
    std::iota(texts.codes.begin(), texts.codes.end(), std::int64_t{0});
    table_.texts[array.name] = std::move(texts);
  }

  std::optional<std::string> StageText(std::string_view field, std::string_view name,
                                       std::size_t attribute) {
    staged_texts_[attribute] = field;
    return TextCodes::Refuse(field, name);
  }

  /// Adds the staged value of an attribute. Texts are numbers in order of first occurrence, which
  /// the build replaces (GraphInput::attribute_texts); nulls before the first text are negative.
  void Keep(std::size_t attribute, ValueList& values) {
    auto& text = staged_texts_[attribute];
    if (!text) return inferred_[attribute].Keep(values);
    if (!texts_[attribute]) texts_[attribute].emplace();
    values.Add(texts_[attribute]->Add(*text));
  }

  Status Progress(const InputStream& stream) {
    return context_.Progress(kReadEdgesPhase, stream, OwnBytes());
  }
  std::uint64_t OwnBytes() const {
    std::uint64_t bytes = ids_.memory_bytes() + table_.memory_bytes();
    for (const auto& texts : texts_) bytes += texts ? texts->memory_bytes() : 0;
    return bytes + (splitter_ == nullptr ? 0 : splitter_->memory_bytes());
  }

  IngestContext& context_;
  IdCollector& ids_;
  EdgeSplitter* const splitter_;              // may be null: all edges are kept
  std::vector<std::string> attribute_names_;  // of the columns of edge files
  Columns columns_;                           // of the file that is being read
  const EdgeFile* file_ = nullptr;            // the file that is being read
  const FilePlan* plan_ = nullptr;
  TypeId file_type_ = 0;
  std::uint64_t file_edges_ = 0;
  bool reserved_ = false;  // for the edges of the file
  IngestedEdges table_;
  std::vector<ValueColumn> inferred_;            // by attribute that is a column of the edge files
  std::vector<std::optional<TextCodes>> texts_;  // likewise: set once the column has texts
  std::vector<std::optional<std::string>> staged_texts_;
  std::vector<EdgeArray> arrays_;
  std::size_t number_ = 0;  // index of file_
  std::int64_t staged_src_ = 0;
  std::int64_t staged_dst_ = 0;
  std::string typed_src_;
  std::string typed_dst_;
  std::vector<std::string_view> entry_;  // of a matrix, as a line
  std::vector<std::string> values_;      // of an edge that is held out
  std::vector<std::int64_t> sources_;
  std::vector<std::int64_t> ends_;
  std::vector<std::byte> block_;
  std::optional<EdgeSpoolWriter> spool_;
  std::size_t spool_block_edges_ = 0;
  std::size_t block_edges_ = 0;  // edges in the block of spool_ that is being filled
  Status failed_;                // first error of spool_ or of arrays_
};

bool HasTypeColumn(const IngestOptions& options) {
  return std::find(options.columns.begin(), options.columns.end(), "type") != options.columns.end();
}

Status CheckEdgeFiles(const IngestOptions& options) {
  const bool type_column = HasTypeColumn(options);
  for (const EdgeFile& file : options.edges) {
    const bool typed = !file.type.empty();
    if (typed && type_column)
      return Status::InvalidArgument(
          fmt::format("{}: its edges have the type '{}' by file and another in the column 'type'; "
                      "give only one of them",
                      file.path.string(), file.type));
    const bool one_says = options.edges.front().type.empty() != typed;
    if (one_says && file.src.has_value() == file.dst.has_value() &&
        file.src.has_value() == (options.edges.front().src.has_value()) &&
        (file.src || options.vertex_ranges.empty()))
      continue;
    return Status::InvalidArgument(
        fmt::format("{}: only some of the edge files have an edge type, or ranges of ids; give "
                    "them for all or for none",
                    file.path.string()));
  }
  return Status::Ok();
}

Status CheckAttributeName(std::string_view where, const std::string& name) {
  const Status named = CheckName("edge attribute", name);
  if (!named.ok()) return named.WithContext(where);
  if (name.size() + 6 <= kMaxNameBytes) return Status::Ok();  // EdgeArrayName appends 6 characters
  return Status::InvalidArgument(fmt::format("{}: the name '{}' is too long", where, name));
}

/// Checks the type that the user gives a column of an attribute.
Status CheckType(const IngestOptions& options, const std::string& name) {
  RHIZOME_ASSIGN_OR_RETURN(const auto type, ColumnTypeOf(options.types, name));
  if (!type || name != kTime || !IsFloat(type->dtype)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("`types`: the column 'time' cannot be {}; give int64 or timestamp",
                  DataTypeName(type->dtype)));
}

/// Checks all edge arrays together: their names, and the total number of values of an edge.
Status CheckArrayColumns(const IngestOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckEdgeArrays(options));
  std::vector<std::string> names = options.columns;
  std::uint64_t values = 0;
  for (const EdgeAttribute& attribute : EdgeAttributesOf(options)) {
    values += std::min(attribute.dim(), kMaxEdgeValues + 1);
    if (values > kMaxEdgeValues)
      return Status::InvalidArgument(
          fmt::format("edge array '{}': at most {} values per edge are possible", attribute.name(),
                      kMaxEdgeValues));
  }
  for (const EdgeArrayFile& array : options.edge_arrays) {
    if (array.name != kWeight && !IsAttribute(array.name))
      return Status::InvalidArgument(
          fmt::format("edge array '{}': the name is in use; choose another name", array.name));
    RHIZOME_RETURN_IF_ERROR(CheckAttributeName("edge array", array.name));
    if (array.texts && (array.dtype != DataType::kInt64 || array.name == kWeight))
      return Status::InvalidArgument(
          fmt::format("edge array '{}': codes of texts must be an int64 attribute", array.name));
    if (std::find(names.begin(), names.end(), array.name) != names.end())
      return Status::InvalidArgument(fmt::format("edge array '{}' is repeated", array.name));
    names.push_back(array.name);
  }
  return Status::Ok();
}

}  // namespace

Status CheckEdgeColumns(const IngestOptions& options) {
  bool src = false;
  bool dst = false;
  for (std::size_t i = 0; i < options.columns.size(); ++i) {
    const std::string& name = options.columns[i];
    if (name == "-") continue;
    if (IsAttribute(name)) {
      RHIZOME_RETURN_IF_ERROR(CheckAttributeName("`columns`", name));
      RHIZOME_RETURN_IF_ERROR(CheckType(options, name));
    }
    const auto begin = options.columns.begin();
    if (std::find(begin, begin + static_cast<std::ptrdiff_t>(i), name) !=
        begin + static_cast<std::ptrdiff_t>(i))
      return Status::InvalidArgument(fmt::format("`columns` names '{}' twice", name));
    src |= name == "src";
    dst |= name == "dst";
  }
  RHIZOME_RETURN_IF_ERROR(CheckArrayColumns(options));
  if (src && dst) return CheckEdgeFiles(options);
  return Status::InvalidArgument(fmt::format(
      "`columns={}` must name src and dst: it gives each column its role (src, dst, "
      "type, weight, time, a name for an attribute, or '-' to skip it); leave it out if "
      "the names in the file's header say the roles",
      fmt::join(options.columns, ",")));
}

bool HasEdgeTypes(const IngestOptions& options) {
  return HasTypeColumn(options) || (!options.edges.empty() && !options.edges.front().type.empty());
}

Result<NpyEdges> OpenNpyEdges(FileSystem& fs, const EdgeFile& file) {
  NpyEdges edges;
  RHIZOME_ASSIGN_OR_RETURN(edges.reader, NpyReader::Open(fs, file.path, {.fortran_order = true}));
  const NpyHeader& header = edges.reader->header();
  const auto refuse = [&](std::string_view reason) {
    return Fail(Status::InvalidArgument(
        fmt::format("{}: {}, but this is {} of shape [{}]", file.path.string(), reason,
                    DataTypeName(header.dtype), fmt::join(header.shape, ", "))));
  };
  const bool two = header.shape.size() == 2 && CanConvert(header.dtype, DataType::kInt64);
  const bool rows = two && header.rows() == 2;
  const bool columns = two && header.dim() == 2;
  if (file.sources_first && *file.sources_first && !rows)
    return refuse("edges must be an array of integers of shape [2, m]");
  if (file.sources_first && !*file.sources_first && !columns)
    return refuse("edges must be an array of integers of shape [m, 2]");
  if (!rows && !columns)
    return refuse("edges must be an array of integers of shape [m, 2] or [2, m]");
  if (rows && columns && !file.sources_first)
    return refuse(
        "its rows may be two edges, or the sources and the destinations; write it as text, one "
        "edge a line (numpy.savetxt with fmt='%d')");
  edges.sources_first = file.sources_first.value_or(rows);
  return edges;
}

void JoinTypedId(std::string_view type, std::string_view id, std::string& joined) {
  joined.assign(type);
  joined += ':';
  joined += id;
}

bool HasWeights(const IngestOptions& options) {
  const auto& columns = options.columns;
  const auto& arrays = options.edge_arrays;
  return std::find(columns.begin(), columns.end(), kWeight) != columns.end() ||
         std::any_of(arrays.begin(), arrays.end(),
                     [](const EdgeArrayFile& array) { return array.name == kWeight; });
}

std::size_t SpoolBlockEdges(std::uint64_t row_bytes) {
  std::size_t edges = kSpoolBlockEdges;
  while (edges > 64 && edges * row_bytes > kSpoolBlockBytes) edges /= 2;
  return edges;
}

std::vector<EdgeAttribute> EdgeAttributesOf(const IngestOptions& options) {
  std::vector<EdgeAttribute> attributes;
  for (const std::string& name : options.columns)
    if (IsAttribute(name)) attributes.emplace_back(name);
  for (const EdgeArrayFile& array : options.edge_arrays) {
    if (array.name == kWeight) continue;
    attributes.emplace_back(array.name, array.dtype, array.dim);
    attributes.back().attributes = array.attributes;
    if (array.texts) attributes.back().attributes.emplace_back(kTypeAttribute, kTypeText);
    if (const auto null = NullOf(array.attributes)) attributes.back().values().SetNull(*null);
  }
  return attributes;
}

std::uint64_t EdgeAttributeBytes(const IngestOptions& options) {
  std::uint64_t bytes = 0;
  for (const EdgeAttribute& attribute : EdgeAttributesOf(options)) bytes += attribute.row_bytes();
  return bytes;
}

std::vector<std::string> EdgeTypeNames(const IngestedEdges& edges) {
  std::vector<std::string> names = edges.type_names.All();
  if (names.empty()) names.emplace_back(kOnlyType);
  return names;
}

Result<IngestedEdges> ReadEdges(IngestContext& context, IdCollector& ids, SpillSpace* space,
                                EdgeSplitter* splitter) {
  EdgeReader reader(context, ids, splitter);
  if (space != nullptr) RHIZOME_RETURN_IF_ERROR(reader.SpillTo(*space));
  for (const EdgeFile& file : context.options.edges) RHIZOME_RETURN_IF_ERROR(reader.Read(file));
  return std::move(reader).TakeTable();
}

}  // namespace internal
}  // namespace rhizome
