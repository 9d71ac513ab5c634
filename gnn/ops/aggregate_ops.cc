#include "rhizome/gnn/aggregate_ops.h"

#include <algorithm>

#include "rhizome/cache/compute_threads.h"
#include "rhizome/cache/simd.h"
#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Runs of targets for each thread: several, so that threads end at about the same time.
constexpr std::size_t kPiecesPerThread = 8;

template <typename T>
std::int64_t AddressOf(const T& object) {
  // The context keeps tensors and plain values only, so borrowed objects are kept by address.
  return reinterpret_cast<std::int64_t>(&object);
}

const AggregateLists& ListsOf(AutogradContext* context) {
  return *reinterpret_cast<const AggregateLists*>(context->saved_data["lists"].toInt());
}

std::span<const float> SpanOf(const torch::Tensor& values) {
  return {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())};
}

// Each operation is an autograd function: forward runs its kernel over the lists, on runs of
// targets with about equally many edges; backward runs a kernel over the transposed lists, which
// are built at the first gradient.
struct SumFunction : torch::autograd::Function<SumFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const AggregateLists* lists, const SumFactors* factors) {
    context->saved_data["lists"] = AddressOf(*lists);
    // The spans are kept one by one, because the caller's struct is a temporary.
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
    torch::Tensor out = at::empty({lists->targets(), rows.size(1)});
    SumOnThreads(
        MakeSumArgs(
            lists->csr(),
            {.target = factors->target, .source = factors->source, .edge = lists->weights()},
            RowsOf(rows), start, out.data_ptr<float>(), static_cast<std::size_t>(rows.size(1))),
        lists->csr());
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
    const CsrView turned = lists.turned().lists.view();
    const auto self = kept("self");
    const AggregateStart start = self.empty() ? AggregateStart{} : StartOf(gradient, self);
    torch::Tensor out = at::empty({lists.sources(), gradient.size(1)});
    SumOnThreads(MakeSumArgs(turned,
                             {.target = kept("source"),
                              .source = kept("target"),
                              .edge = RHIZOME_MUTANT("gradients pass edges of weight 1")
                                          ? std::span<const float>()
                                          : lists.turned_weights()},
                             RowsOf(gradient), start, out.data_ptr<float>(),
                             static_cast<std::size_t>(gradient.size(1))),
                 turned);
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
    torch::Tensor out = at::empty({lists->targets(), rows.size(1)});
    SumOnThreads(MakeSumArgs(lists->csr(), {.target = {}, .source = {}, .edge = SpanOf(factors)},
                             RowsOf(rows), {}, out.data_ptr<float>(),
                             static_cast<std::size_t>(rows.size(1))),
                 lists->csr());
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
    const TurnedCsr& turned = lists.turned();
    const CsrView csr = turned.lists.view();
    std::vector<float> turned_weights(turned.edges.size());
    for (std::size_t k = 0; k < turned_weights.size(); ++k) {
      turned_weights[k] = weights.data_ptr<float>()[turned.edges[k]];
    }
    torch::Tensor out = at::empty({lists.sources(), gradient.size(1)});
    SumOnThreads(
        MakeSumArgs(csr, {.target = {}, .source = {}, .edge = turned_weights}, RowsOf(gradient), {},
                    out.data_ptr<float>(), static_cast<std::size_t>(gradient.size(1))),
        csr);
    return out;
  }

  static torch::Tensor OfWeights(const AggregateLists& lists, const torch::Tensor& x,
                                 const torch::Tensor& gradient) {
    const CsrView& csr = lists.csr();
    const RowsView rows = RowsOf(x);
    torch::Tensor out = at::empty({static_cast<std::int64_t>(csr.neighbors.size())});
    const EdgeDotArgs args{.type = rows.type,
                           .x = rows.x,
                           .x_stride = rows.stride,
                           .dim = rows.dim,
                           .begins = csr.offsets.data(),
                           .ends = csr.offsets.data() + 1,
                           .index = csr.neighbors.data(),
                           .gradient = gradient.data_ptr<float>(),
                           .out = out.data_ptr<float>()};
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
    const CsrView& csr = lists->csr();
    torch::Tensor out = at::empty({lists->targets(), rows.size(1)});
    torch::Tensor edge = at::empty({lists->targets(), rows.size(1)}, torch::kInt32);
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
    ForTargets(csr, [&](std::size_t begin, std::size_t end) { Kernels().max(args, begin, end); });
    context->saved_data["lists"] = AddressOf(*lists);
    context->save_for_backward({edge});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const AggregateLists& lists = ListsOf(context);
    const TurnedCsr& turned = lists.turned();
    const torch::Tensor edge = context->get_saved_variables()[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor out = at::empty({lists.sources(), gradient.size(1)});
    const MaxGradientArgs args{
        .gradient = gradient.data_ptr<float>(),
        .winner = reinterpret_cast<const std::uint32_t*>(edge.data_ptr<std::int32_t>()),
        .dim = static_cast<std::size_t>(gradient.size(1)),
        .begins = turned.lists.offsets.data(),
        .ends = turned.lists.offsets.data() + 1,
        .target = turned.lists.neighbors.data(),
        .edge = turned.edges.data(),
        .out = out.data_ptr<float>()};
    ForTargets(turned.lists.view(), [&](std::size_t begin, std::size_t end) {
      Kernels().max_gradient(args, begin, end);
    });
    return {out, {}};
  }
};

}  // namespace

const TurnedCsr& AggregateLists::turned() const {
  if (!is_turned_) turned_ = Turn(csr_, static_cast<std::size_t>(sources_));
  is_turned_ = true;
  return turned_;
}

std::span<const float> AggregateLists::turned_weights() const {
  if (turned_weights_.size() == weights_.size()) return turned_weights_;
  const std::vector<std::uint32_t>& edges = turned().edges;
  turned_weights_.resize(weights_.size());
  for (std::size_t e = 0; e < edges.size(); ++e) turned_weights_[e] = weights_[edges[e]];
  return turned_weights_;
}

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

}  // namespace rhizome::inline internal
