#include "gnn/ops/aggregate_ops.h"

#include <algorithm>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/device_aggregate.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Runs of targets per thread: several, so that all threads finish at about the same time.
constexpr std::size_t kPiecesPerThread = 8;

template <typename T>
std::int64_t AddressOf(const T& object) {
  // The context keeps tensors and plain values only, so borrowed objects are kept by address.
  return reinterpret_cast<std::int64_t>(&object);
}

const AggregateLists& ListsOf(AutogradContext* context) {
  return *reinterpret_cast<const AggregateLists*>(context->saved_data["lists"].toInt());
}

/// Returns an uninitialised float32 matrix with the columns and device of `x`.
torch::Tensor EmptyBeside(const torch::Tensor& x, std::int64_t rows) {
  return at::empty({rows, x.size(1)}, x.options().dtype(torch::kFloat32).requires_grad(false));
}

std::span<const float> SpanOf(const torch::Tensor& values) {
  return {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())};
}

// Each operation is an autograd function. Forward runs its kernel over the lists, on runs of
// targets with about the same number of edges each. Backward runs a kernel over the transposed
// lists, which are built at the first gradient.
struct SumFunction : torch::autograd::Function<SumFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const AggregateLists* lists, const SumFactors* factors) {
    context->saved_data["lists"] = AddressOf(*lists);
    // The spans are saved individually, because the caller's struct is a temporary.
    const auto keep = [&](const char* name, std::span<const float> values) {
      context->saved_data[name] = reinterpret_cast<std::int64_t>(values.data());
      context->saved_data[std::string(name) + "_size"] = static_cast<std::int64_t>(values.size());
    };
    keep("target", factors->target);
    keep("source", factors->source);
    keep("self", factors->self);
    const torch::Tensor rows = x.contiguous();
    AggregateStart start;
    torch::Tensor own;
    if (!factors->self.empty()) {
      own = rows.narrow(0, 0, lists->targets()).to(torch::kFloat32);
      start = StartOf(own, factors->self);
    }
    torch::Tensor out = EmptyBeside(rows, lists->targets());
    RunSum(
        *lists,
        MakeSumArgs(
            lists->placed_csr(),
            {.target = factors->target, .source = factors->source, .edge = lists->placed_weights()},
            RowsOf(rows), start, out.data_ptr<float>(), static_cast<std::size_t>(rows.size(1))),
        lists->placed_csr(), lists->placed_long_lists());
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const AggregateLists& lists = ListsOf(context);
    const auto kept = [&](const char* name) {
      return std::span(
          reinterpret_cast<const float*>(context->saved_data[name].toInt()),
          static_cast<std::size_t>(context->saved_data[std::string(name) + "_size"].toInt()));
    };
    const torch::Tensor gradient = gradients[0].contiguous();
    const AggregateLists::Turned turned = lists.placed_transpose();
    const auto self = kept("self");
    const AggregateStart start = self.empty() ? AggregateStart{} : StartOf(gradient, self);
    torch::Tensor out = EmptyBeside(gradient, lists.sources());
    RunSum(lists,
           MakeSumArgs(turned.csr,
                       {.target = kept("source"),
                        .source = kept("target"),
                        .edge = RHIZOME_MUTANT("gradients pass edges of weight 1")
                                    ? std::span<const float>()
                                    : turned.weights},
                       RowsOf(gradient), start, out.data_ptr<float>(),
                       static_cast<std::size_t>(gradient.size(1))),
           turned.csr, turned.long_lists);
    return {out, {}, {}};
  }

 private:
  static AggregateStart StartOf(const torch::Tensor& rows, std::span<const float> scale) {
    return {.rows = rows.data_ptr<float>(),
            .stride = static_cast<std::size_t>(rows.size(1)),
            .count = scale.size(),
            .scale = scale};
  }
};

struct WeightedFunction : torch::autograd::Function<WeightedFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weights, const AggregateLists* lists) {
    context->saved_data["lists"] = AddressOf(*lists);
    context->save_for_backward({x, weights});
    const torch::Tensor rows = x.contiguous();
    const torch::Tensor factors = weights.contiguous();
    torch::Tensor out = EmptyBeside(rows, lists->targets());
    RunSum(*lists,
           MakeSumArgs(lists->placed_csr(), {.target = {}, .source = {}, .edge = SpanOf(factors)},
                       RowsOf(rows), {}, out.data_ptr<float>(),
                       static_cast<std::size_t>(rows.size(1))),
           lists->placed_csr(), lists->placed_long_lists());
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const AggregateLists& lists = ListsOf(context);
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor gradient = gradients[0].contiguous();
    variable_list out = {{}, {}, {}};
    if (context->needs_input_grad(0)) out[0] = OfRows(lists, saved[1].contiguous(), gradient);
    if (context->needs_input_grad(1)) out[1] = OfWeights(lists, saved[0].contiguous(), gradient);
    return out;
  }

 private:
  static torch::Tensor OfRows(const AggregateLists& lists, const torch::Tensor& weights,
                              const torch::Tensor& gradient) {
    const AggregateLists::Turned turned = lists.placed_transpose();
    const torch::Tensor edges =
        TensorOnDevice(turned.edges.data(), {static_cast<std::int64_t>(turned.edges.size())},
                       torch::kInt32, weights.device());
    const torch::Tensor turned_weights = weights.index_select(0, edges);
    torch::Tensor out = EmptyBeside(gradient, lists.sources());
    RunSum(lists,
           MakeSumArgs(turned.csr, {.target = {}, .source = {}, .edge = SpanOf(turned_weights)},
                       RowsOf(gradient), {}, out.data_ptr<float>(),
                       static_cast<std::size_t>(gradient.size(1))),
           turned.csr, turned.long_lists);
    return out;
  }

  static torch::Tensor OfWeights(const AggregateLists& lists, const torch::Tensor& x,
                                 const torch::Tensor& gradient) {
    const CsrView& csr = lists.placed_csr();
    const RowsView rows = RowsOf(x);
    torch::Tensor out =
        at::empty({static_cast<std::int64_t>(csr.neighbors.size())}, gradient.options());
    const EdgeDotArgs args{.type = rows.type,
                           .x = rows.x,
                           .x_stride = rows.stride,
                           .dim = rows.dim,
                           .begins = csr.offsets.data(),
                           .ends = csr.offsets.data() + 1,
                           .index = csr.neighbors.data(),
                           .gradient = gradient.data_ptr<float>(),
                           .out = out.data_ptr<float>()};
    if (lists.uploads() != nullptr) {
      QueueEdgeDots(lists.uploads()->device(), args, csr.targets());
      return out;
    }
    ForTargets(csr,
               [&](std::size_t begin, std::size_t end) { Kernels().edge_dot(args, begin, end); });
    return out;
  }
};

struct MaxFunction : torch::autograd::Function<MaxFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const AggregateLists* lists) {
    const torch::Tensor rows = x.contiguous();
    const RowsView view = RowsOf(rows);
    const CsrView& csr = lists->placed_csr();
    torch::Tensor out = EmptyBeside(rows, lists->targets());
    torch::Tensor edge = at::empty(out.sizes(), out.options().dtype(torch::kInt32));
    const MaxArgs args{.type = view.type,
                       .x = view.x,
                       .x_stride = view.stride,
                       .dim = view.dim,
                       .begins = csr.offsets.data(),
                       .ends = csr.offsets.data() + 1,
                       .index = csr.neighbors.data(),
                       .index_end = static_cast<std::uint32_t>(csr.neighbors.size()),
                       .out = out.data_ptr<float>(),
                       .out_stride = view.dim,
                       .edge = reinterpret_cast<std::uint32_t*>(edge.data_ptr<std::int32_t>())};
    if (lists->uploads() != nullptr) {
      QueueMax(lists->uploads()->device(), args, csr.targets());
    } else {
      ForTargets(csr, [&](std::size_t begin, std::size_t end) { Kernels().max(args, begin, end); });
    }
    context->saved_data["lists"] = AddressOf(*lists);
    context->save_for_backward({edge});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const AggregateLists& lists = ListsOf(context);
    const AggregateLists::Turned turned = lists.placed_transpose();
    const torch::Tensor edge = context->get_saved_variables()[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor out = EmptyBeside(gradient, lists.sources());
    const MaxGradientArgs args{
        .gradient = gradient.data_ptr<float>(),
        .winner = reinterpret_cast<const std::uint32_t*>(edge.data_ptr<std::int32_t>()),
        .dim = static_cast<std::size_t>(gradient.size(1)),
        .begins = turned.csr.offsets.data(),
        .ends = turned.csr.offsets.data() + 1,
        .target = turned.csr.neighbors.data(),
        .edge = turned.edges.data(),
        .out = out.data_ptr<float>()};
    if (lists.uploads() != nullptr) {
      QueueMaxGradient(lists.uploads()->device(), args, turned.csr.targets());
      return {out, {}};
    }
    ForTargets(turned.csr, [&](std::size_t begin, std::size_t end) {
      Kernels().max_gradient(args, begin, end);
    });
    return {out, {}};
  }
};

}  // namespace

RowsView RowsOf(const torch::Tensor& x) {
  TORCH_CHECK(x.dim() == 2 && x.stride(1) == 1, "aggregation: rows must be dense");
  RowsView view{.type = RowType::kFloat32,
                .x = x.data_ptr(),
                .dim = static_cast<std::size_t>(x.size(1)),
                .stride = static_cast<std::size_t>(x.stride(0))};
  if (x.scalar_type() == torch::kHalf) {
    view.type = RowType::kFloat16;
  } else if (x.scalar_type() == torch::kBFloat16) {
    view.type = RowType::kBfloat16;
  } else {
    TORCH_CHECK(x.scalar_type() == torch::kFloat32,
                "aggregation: rows must be float32, float16 or bfloat16");
  }
  return view;
}

void ForTargets(const CsrView& csr, const std::function<void(std::size_t, std::size_t)>& body) {
  const std::size_t threads = ComputeThreads();
  const std::vector<std::size_t> cuts =
      SplitByEdges(csr, threads == 1 ? 1 : threads * kPiecesPerThread);
  ComputeFor(cuts.size() - 1, [&](std::size_t i) {
    if (cuts[i] < cuts[i + 1]) body(cuts[i], cuts[i + 1]);
  });
}

void RunSum(const AggregateLists& lists, const SumArgs& args, const CsrView& csr,
            const PlacedLongLists& long_lists) {
  if (lists.uploads() == nullptr) return SumOnThreads(args, csr);
  // May be freed when this returns: libtorch does not reuse the memory before the queued sum is
  // done.
  const torch::Tensor partials =
      at::empty({static_cast<std::int64_t>(long_lists.partial_count * args.dim)},
                torch::TensorOptions(lists.uploads()->place()).dtype(torch::kFloat32));
  QueueSum(lists.uploads()->device(), args, csr.targets(), long_lists, partials.data_ptr<float>());
}

void SumOnThreads(const SumArgs& args, const CsrView& csr) {
  ForTargets(csr, [&](std::size_t begin, std::size_t end) { Kernels().sum(args, begin, end); });
}

torch::Tensor AggregateSum(const torch::Tensor& x, const AggregateLists& lists,
                           const SumFactors& factors) {
  return SumFunction::apply(x, &lists, &factors);
}

torch::Tensor AggregateWeighted(const torch::Tensor& x, const torch::Tensor& weights,
                                const AggregateLists& lists) {
  return WeightedFunction::apply(x, weights, &lists);
}

torch::Tensor AggregateMax(const torch::Tensor& x, const AggregateLists& lists) {
  return MaxFunction::apply(x, &lists);
}

}  // namespace internal
}  // namespace rhizome
