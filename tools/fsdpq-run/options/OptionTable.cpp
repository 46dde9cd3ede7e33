#include "tools/fsdpq-run/options/OptionTable.h"

namespace fsdpq::run {
namespace {

using enum ValueKind;
using enum OptionClass;

constexpr unsigned everywhere = Train | Plan | Eval | Generate;
constexpr double unlimited = 9e15; // whole numbers below are exact doubles

constexpr CommandSpec commands[] = {
    {Train, "train", "fine-tune a model (the default)"},
    {Plan, "plan", "say what a training run needs; takes no data, no weights"},
    {Eval, "eval", "compute the loss of a data set"},
    {Generate, "generate", "answer a prompt"},
    {Doctor, "doctor", "say what this machine has"},
};

constexpr std::string_view model = "Model", data = "Data",
                           training = "Training", adapters = "Adapters",
                           quantisation = "Quantisation", output = "Output",
                           generation = "Generation", machine = "Machine",
                           processes = "Processes", compiler = "Compiler",
                           profiling = "Profiling";

constexpr OptionSpec options[] = {
    //===--- Model ----------------------------------------------------------//
    {.name = "model_name", .byDefault = "meta-llama/Llama-2-7b-hf",
     .help = "model: a folder with config.json and safetensors, a GGUF file, or "
             "a name in the Hugging Face cache; for plan also a config.json",
     .group = model, .commands = everywhere},
    {.name = "revision", .byDefault = "main",
     .help = "branch, tag or commit of a model in the Hugging Face cache",
     .group = model, .commands = everywhere},
    {.name = "train_type", .kind = Choice, .byDefault = "qlora",
     .help = "what is trained: all weights, adapters on the plain base, or "
             "adapters on the base in 4 bits; eval and generate take the base "
             "from it",
     .group = model, .commands = everywhere, .choices = "full|lora|qlora",
     .laterChoices = "custom_qlora|custom_lora|hqq_lora|hqq_dora|bnb_dora|"
                     "bnb_llama_pro|hqq_llama_pro"},
    {.name = "precision", .kind = Choice, .byDefault = "bf16",
     .help = "type that activations and frozen weights are stored in; products "
             "and sums are f32, and so are trained weights",
     .group = model, .commands = everywhere, .choices = "bf16|fp32",
     .laterChoices = "fp16_autocast|bf16_autocast|bf16_buffers_autocast"},
    {.name = "llama_pro_path", .help = "folder of an expanded model",
     .group = model, .optionClass = NotYet},

    //===--- Data -----------------------------------------------------------//
    {.name = "dataset",
     .help = "file of records (.json, .jsonl): alpaca form or "
             "pre-tokenised; the reference's names are not there yet",
     .group = data, .commands = Train | Plan | Eval},
    {.name = "dataset_samples", .kind = Int,
     .help = "take the first so many records; omitted: all",
     .group = data, .commands = Train | Plan | Eval, .min = 1,
     .max = unlimited},
    {.name = "context_length", .kind = Int, .byDefault = "512",
     .help = "tokens of a row at most; longer rows are cut. For generate: "
             "prompt and answer together",
     .group = data, .commands = everywhere, .min = 2, .max = 1 << 20},
    {.name = "shuffle", .kind = Bool, .byDefault = "true",
     .help = "read the records in another order in each epoch", .group = data},

    //===--- Training -------------------------------------------------------//
    {.name = "batch_size", .kind = Int, .byDefault = "1",
     .help = "rows of a micro-batch", .group = training,
     .commands = Train | Plan | Eval, .min = 1, .max = 65536},
    {.name = "gradient_accumulation_steps", .kind = Int, .byDefault = "1",
     .help = "micro-batches of an optimizer step", .group = training, .min = 1,
     .max = 1 << 20},
    {.name = "num_epochs", .kind = Int, .byDefault = "1",
     .help = "passes over the data", .group = training, .min = 1,
     .max = 1 << 20},
    {.name = "max_steps", .kind = Int, .byDefault = "-1",
     .help = "optimizer steps at most; -1: as many as the epochs have",
     .group = training, .min = -1, .max = unlimited},
    {.name = "lr", .kind = Real, .byDefault = "1e-5", .help = "learning rate",
     .group = training, .min = 0, .max = 1e6},
    {.name = "lr_scheduler", .kind = Choice, .byDefault = "constant",
     .help = "learning rate over the run; linear and cosine warm up for a tenth "
             "of it",
     .group = training, .choices = "constant|linear|cosine"},
    {.name = "optimizer", .kind = Choice, .byDefault = "adamw",
     .help = "update rule", .group = training,
     .choices = "adamw|adam|sgd|adadelta",
     .laterChoices = "fused_adam|fused_adamw"},
    {.name = "wd", .kind = Real, .byDefault = "0.1",
     .help = "decoupled weight decay of adamw; other rules have none",
     .group = training, .min = 0, .max = 1e6},
    {.name = "adam_beta1", .kind = Real,
     .help = "omitted: 0.9", .group = training, .min = 0, .max = 0.999999},
    {.name = "adam_beta2", .kind = Real,
     .help = "omitted: 0.95 for adamw, 0.999 for adam", .group = training,
     .min = 0, .max = 0.99999999},
    {.name = "adam_epsilon", .kind = Real,
     .help = "omitted: 1e-5 for adamw, 1e-8 for adam", .group = training,
     .min = 0, .max = 1},
    {.name = "apply_gradient_clipping", .kind = Bool,
     .help = "clip the gradients' norm; omitted: if --grad_norm is given",
     .group = training},
    {.name = "grad_norm", .kind = Real, .byDefault = "0.3",
     .help = "largest L2 norm of all gradients; given alone it turns clipping "
             "on",
     .group = training, .min = 1e-30, .max = 1e30, .alias = "max_grad_norm"},
    {.name = "use_gradient_checkpointing", .kind = Bool,
     .help = "keep only each layer's input and compute the rest again; omitted: "
             "off, for no memory budget asks for it",
     .group = training},
    {.name = "reentrant_checkpointing", .kind = Bool, .byDefault = "false",
     .help = "the backward pass is compiled, so checkpointing has one form only",
     .group = training, .optionClass = Moot},
    {.name = "loss_average", .kind = Choice, .byDefault = "batch",
     .help = "what weighs the same in an optimizer step's loss: each micro-batch "
             "or each labelled token",
     .group = training, .choices = "batch|token"},
    {.name = "seed", .kind = Int, .byDefault = "42",
     .help = "of the adapters' initial values and of shuffling",
     .group = training, .min = 0, .max = unlimited},
    {.name = "deterministic", .kind = Bool, .byDefault = "false",
     .help = "equal results for every number of processes; gradients are then "
             "reduced in each micro-step",
     .group = training},

    //===--- Adapters -------------------------------------------------------//
    {.name = "lora_rank", .kind = Int, .byDefault = "64",
     .help = "rank of the adapters", .group = adapters, .min = 1, .max = 4096},
    {.name = "lora_alpha", .kind = Real, .byDefault = "16",
     .help = "adapters are multiplied by alpha / rank", .group = adapters,
     .min = 0, .max = 1e6},
    {.name = "lora_dropout", .kind = Real, .byDefault = "0.1",
     .help = "rate, less than 1, at which elements of adapters' inputs are set to "
             "zero in training",
     .group = adapters, .min = 0, .max = 1},
    {.name = "lora_target_modules", .kind = List, .byDefault = "all",
     .help = "modules that get adapters: all (q, k, v, up, gate, down; not o), "
             "default (q, v), all-linear, or names separated by commas",
     .group = adapters},
    {.name = "adapter",
     .help = "folder of a PEFT adapter to start from; its rank, alpha and "
             "targets hold, and its dropout if --lora_dropout is not given",
     .group = adapters, .commands = everywhere},
    {.name = "adapter_dtype", .kind = Choice, .byDefault = "f32",
     .help = "type of adapters and optimizer state", .group = adapters,
     .choices = "f32", .laterChoices = "param"},

    //===--- Quantisation ---------------------------------------------------//
    {.name = "n_bits", .kind = Int, .byDefault = "4",
     .help = "bits of an element of a quantised base", .group = quantisation,
     .commands = everywhere, .min = 4, .max = 4},
    {.name = "quant_type", .kind = Choice, .byDefault = "nf4",
     .help = "values of the 16 codes", .group = quantisation,
     .commands = everywhere, .choices = "nf4|fp4"},
    {.name = "blocksize", .kind = Int, .byDefault = "64",
     .help = "elements that share a scale: a power of two",
     .group = quantisation, .commands = everywhere, .min = 2, .max = 4096},
    {.name = "double_quant", .kind = Bool, .byDefault = "true",
     .help = "quantise the scales to 8 bits", .group = quantisation,
     .commands = everywhere},

    //===--- Output ---------------------------------------------------------//
    {.name = "output_dir", .byDefault = "output",
     .help = "folder for the adapter, metrics.jsonl and config.yaml",
     .group = output},
    {.name = "overwrite", .kind = Bool, .byDefault = "false",
     .help = "use an output folder that holds a result", .group = output},
    {.name = "resume", .help = "continue an interrupted run: auto, must or a "
                               "checkpoint's path",
     .group = output, .optionClass = NotYet},
    {.name = "save_model", .kind = Bool,
     .help = "of train type full: save the model; omitted: yes. Adapters are "
             "always saved",
     .group = output},
    {.name = "metrics",
     .help = "file for one JSON line a step; omitted: metrics.jsonl in the "
             "output folder (eval: none)",
     .group = output, .commands = Train | Plan | Eval},
    {.name = "report", .help = "file for an HTML report", .group = output,
     .optionClass = NotYet},
    {.name = "log_to", .kind = List, .byDefault = "tqdm",
     .help = "where steps are shown: tqdm (a bar), stdout (a line each), or "
             "both, separated by a comma",
     .group = output, .choices = "tqdm|stdout", .laterChoices = "wandb"},
    {.name = "project_name", .help = "of W&B", .group = output,
     .optionClass = NotYet},
    {.name = "name", .help = "of the W&B run", .group = output,
     .optionClass = NotYet},
    {.name = "group", .help = "of the W&B run", .group = output,
     .optionClass = NotYet},
    {.name = "entity", .help = "of W&B", .group = output,
     .optionClass = NotYet},
    {.name = "verbose", .kind = Bool, .byDefault = "false",
     .help = "say more: what the memory holds",
     .group = output, .commands = everywhere},

    //===--- Generation -----------------------------------------------------//
    {.name = "prompt", .help = "the instruction to answer", .group = generation,
     .commands = Generate},
    {.name = "raw", .kind = Bool, .byDefault = "false",
     .help = "continue the text itself instead of an alpaca instruction",
     .group = generation, .commands = Generate},
    {.name = "max_new_tokens", .kind = Int, .byDefault = "128",
     .help = "tokens of the answer at most", .group = generation,
     .commands = Generate, .min = 1, .max = 1 << 20},

    //===--- Machine --------------------------------------------------------//
    {.name = "device", .kind = Choice, .byDefault = "auto",
     .help = "what computes; auto: this machine's GPUs, else its CPU. For plan, "
             "cuda means the architecture of this machine's GPU",
     .group = machine, .commands = everywhere, .choices = "auto|cpu|cuda"},
    {.name = "threads", .kind = Int, .byDefault = "0",
     .help = "threads of the CPU; 0: OMP_NUM_THREADS, else one a core",
     .group = machine, .commands = everywhere | Doctor, .min = 0, .max = 4096},
    {.name = "use_cpu_offload", .kind = Bool,
     .help = "keep weights in host memory; on the CPU they are there anyway",
     .group = machine},
    {.name = "use_activation_cpu_offload", .kind = Bool,
     .help = "keep activations in host memory; on the CPU they are there anyway",
     .group = machine},
    {.name = "memory_budget", .byDefault = "auto",
     .help = "memory of one process: 22GiB, or 90% of its share of the machine; "
             "what a plan leaves of it goes to weights that stay gathered. auto: "
             "no limit, and none stay",
     .group = machine, .commands = everywhere},
    {.name = "host_memory_budget", .help = "host memory to use",
     .group = machine, .optionClass = NotYet, .inert = "auto"},
    {.name = "hardware",
     .help = "file that describes a machine (see tools/hardware): how long a step "
             "takes there",
     .group = machine, .commands = Plan},
    {.name = "low_memory", .kind = Bool, .byDefault = "true",
     .help = "weights always stream from the checkpoint, one tensor at a time",
     .group = machine, .optionClass = Moot},
    {.name = "loading_workers", .kind = Int, .byDefault = "-1",
     .help = "weights are converted and quantised with all threads",
     .group = machine, .optionClass = Moot, .min = -1, .max = 4096},

    //===--- Processes ------------------------------------------------------//
    {.name = "nproc_per_node", .kind = Int,
     .help = "start so many processes on this machine; under SLURM in each task, "
             "of which a machine then has one. torchrun's number must agree; "
             "omitted: train starts one for each GPU, else 1",
     .group = processes, .commands = everywhere, .min = 1, .max = 4096},
    {.name = "world_size", .kind = Int, .byDefault = "-1",
     .help = "processes of the run; -1: as many as are started, which is one for "
             "each GPU if nothing else says. Alone it starts them on this machine. "
             "For plan: compile for so many",
     .group = processes, .commands = everywhere, .min = -1, .max = 65536},
    {.name = "sharding_strategy", .kind = Choice, .byDefault = "full_shard",
     .help = "how weights, gradients and moments are spread over processes: over "
             "all, not at all (ddp), or within groups of them (hybrid); "
             "shard_grad_op keeps what forward gathered for backward",
     .group = processes, .commands = everywhere,
     .choices = "full_shard|shard_grad_op|ddp|hybrid_full_shard|"
                "hybrid_shard_grad_op"},
    {.name = "shard_group", .kind = Int,
     .help = "of the hybrid strategies: processes of a group; omitted: those of "
             "one machine",
     .group = processes, .commands = everywhere, .min = 1, .max = 65536},
    {.name = "fsdp_units", .kind = Choice, .byDefault = "layer",
     .help = "what is gathered at a time", .group = processes,
     .commands = everywhere, .choices = "layer|attn+mlp"},
    {.name = "master_addr",
     .help = "address of the machine of rank 0, where it listens; omitted: "
             "MASTER_ADDR, or SLURM's first host. Processes of one machine meet "
             "at the loopback address",
     .group = processes, .commands = everywhere},
    {.name = "master_port", .kind = Int,
     .help = "port there; omitted: MASTER_PORT, under SLURM one that follows from "
             "the job's number, on one machine any that is free",
     .group = processes, .commands = everywhere, .min = 0, .max = 65535},
    {.name = "job_token_file",
     .help = "file, readable by its owner alone, with the secret by which "
             "processes on several machines know each other; omitted: "
             "FSDPQ_JOB_TOKEN",
     .group = processes, .commands = everywhere},
    {.name = "collective_timeout", .kind = Int, .byDefault = "600",
     .help = "seconds that a process waits for others in a collective",
     .group = processes, .commands = everywhere, .min = 1, .max = 604800},
    {.name = "no_sync", .kind = Bool, .byDefault = "false",
     .help = "when gradients are reduced is decided by the compiler",
     .group = processes, .optionClass = Moot},

    //===--- Compiler -------------------------------------------------------//
    {.name = "models",
     .help = "folder of architectures, or one .mlir file; omitted: "
             "$FSDPQ_MODELS, else the one that came with fsdpq-run",
     .group = compiler, .commands = everywhere | Doctor},
    {.name = "plan", .help = "use this compiled plan instead of compiling",
     .group = compiler, .commands = everywhere},
    {.name = "save_plan",
     .help = "also write the compiled plan to this file; plan then compiles its "
             "kernels too",
     .group = compiler, .commands = everywhere},
    {.name = "target", .byDefault = "cpu",
     .help = "what the plan is for: cpu, which is this machine's, or a GPU "
             "architecture such as sm_90a, which need not be here",
     .group = compiler, .commands = Plan},
    {.name = "compile_to", .kind = Choice,
     .help = "stop after this phase and print its IR", .group = compiler,
     .commands = everywhere, .choices = "model|grad|shard|fuse|kernel|exec"},
    {.name = "dump_ir", .help = "folder for the IR after each phase",
     .group = compiler, .commands = everywhere},
    {.name = "dump_kernels",
     .help = "folder for the texts that kernels are compiled from: <kernel>.cu of "
             "a GPU, with its launch, registers and spills, or <kernel>.mlir",
     .group = compiler, .commands = everywhere},
    {.name = "override_kernels",
     .help = "folder of CUDA texts, each <kernel>.cu taking the place of that "
             "kernel's; how it is started stays as it is",
     .group = compiler, .commands = everywhere},

    //===--- Profiling ------------------------------------------------------//
    {.name = "profile", .kind = Bool, .byDefault = "false",
     .help = "record where the time goes", .group = profiling,
     .optionClass = NotYet, .inert = "false"},
    {.name = "profile_memory", .kind = Bool, .byDefault = "false",
     .help = "record allocations (plan prints what a run will use)",
     .group = profiling, .optionClass = NotYet, .inert = "false"},
    {.name = "profiling_output", .help = "folder of the profile",
     .group = profiling, .optionClass = NotYet, .inert = "profiles"},
    {.name = "save_hardware",
     .help = "file for a description of this machine, measured while training, "
             "that plan --hardware takes",
     .group = profiling},
    {.name = "trace",
     .help = "file for a trace of all processes, for ui.perfetto.dev",
     .group = profiling, .commands = Train | Plan | Eval},
    {.name = "with_stack", .kind = Bool, .byDefault = "false",
     .help = "of the profile", .group = profiling, .optionClass = NotYet,
     .inert = "false"},
    {.name = "with_shapes", .kind = Bool, .byDefault = "false",
     .help = "of the profile", .group = profiling, .optionClass = NotYet,
     .inert = "false"},
    {.name = "export_trace", .kind = Bool, .byDefault = "true",
     .help = "the reference never reads it: a profile always has its trace",
     .group = profiling, .optionClass = Moot},
    {.name = "export_memory_timeline", .kind = Bool, .byDefault = "false",
     .help = "of the profile", .group = profiling, .optionClass = NotYet,
     .inert = "false"},
    {.name = "wait_steps", .kind = Int, .help = "of the profile",
     .group = profiling, .optionClass = NotYet, .inert = "0"},
    {.name = "warmup_steps", .kind = Int,
     .help = "of the profile (the learning rate's warm-up is a tenth of the "
             "run)",
     .group = profiling, .optionClass = NotYet, .inert = "1"},
    {.name = "active_steps", .kind = Int, .help = "of the profile",
     .group = profiling, .optionClass = NotYet, .inert = "2"},
    {.name = "repeat", .kind = Int, .help = "of the profile",
     .group = profiling, .optionClass = NotYet, .inert = "0"},
    {.name = "profiling_frequency", .kind = Int, .help = "of the profile",
     .group = profiling, .optionClass = NotYet, .inert = "10"},
};

} // namespace

std::span<const CommandSpec> commandTable() { return commands; }

std::span<const OptionSpec> optionTable() { return options; }

const OptionSpec *findOption(std::string_view name) {
  for (const OptionSpec &option : options)
    if (option.name == name || (!name.empty() && option.alias == name))
      return &option;
  return nullptr;
}

} // namespace fsdpq::run
