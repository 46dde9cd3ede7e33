// Llama and models built like it: Llama 2, 3, 3.1, 3.2, SmolLM2, TinyLlama.
//
// How to read this. `!x` is an activation: one row of D numbers for each of the
// T tokens of a micro-batch. `tfm.use` takes a parameter's value; inside the
// layer it is that layer's own. `tfm.linear` multiplies by a weight stored
// [out, in]. Sizes such as "H*E" are products of the names under `config`, which
// say where each is found in a Hugging Face config.json and in a GGUF file.

!ids = tensor<?xi32, #tfm.dims<"T">>
!x = tensor<?x?xf32, #tfm.dims<"T", "D">>
!q = tensor<?x?xf32, #tfm.dims<"T", "H*E">>
!kv = tensor<?x?xf32, #tfm.dims<"T", "G*E">>
!f = tensor<?x?xf32, #tfm.dims<"T", "F">>
!rope = tensor<?x?xf32, #tfm.dims<"T", "E">>
!logits = tensor<?x?xf32, #tfm.dims<"T", "V">>

!norm_w = tensor<?xf32, #tfm.dims<"D">>
!q_w = tensor<?x?xf32, #tfm.dims<"H*E", "D">>
!kv_w = tensor<?x?xf32, #tfm.dims<"G*E", "D">>
!o_w = tensor<?x?xf32, #tfm.dims<"D", "H*E">>
!up_w = tensor<?x?xf32, #tfm.dims<"F", "D">>
!down_w = tensor<?x?xf32, #tfm.dims<"D", "F">>
!vocab_w = tensor<?x?xf32, #tfm.dims<"V", "D">>

tfm.architecture @llama attributes {
  hf = ["LlamaForCausalLM"],
  gguf = "llama",
  config = {
    // name = [in config.json, in GGUF metadata]
    D = ["hidden_size", "llama.embedding_length"],
    F = ["intermediate_size", "llama.feed_forward_length"],
    H = ["num_attention_heads", "llama.attention.head_count"],
    G = ["num_key_value_heads | num_attention_heads",
         "llama.attention.head_count_kv | llama.attention.head_count"],
    E = ["head_dim | hidden_size / num_attention_heads",
         "llama.attention.key_length | llama.rope.dimension_count | llama.embedding_length / llama.attention.head_count"],
    L = ["num_hidden_layers", "llama.block_count"],
    V = ["vocab_size", "rows(token_embd.weight) | llama.vocab_size"],
    eps = ["rms_norm_eps | 1e-6", "llama.attention.layer_norm_rms_epsilon | 1e-5"],
    theta = ["rope_parameters.rope_theta | rope_theta | 10000", "llama.rope.freq_base | 10000"],
    rope_scaling = ["rope_parameters | rope_scaling | none", "prefix(llama.rope.scaling) | none"],
    rope_factors = ["none", "rope_freqs.weight | none"],
    tied = ["tie_word_embeddings | false", "absent(output.weight)"]
  },
  // What this description does not hold: refused when a checkpoint asks for it.
  unsupported = {
    attention_bias = "attention_bias | false", mlp_bias = "mlp_bias | false"
  },
  required = {
    hidden_act = ["hidden_act", "silu", "swish"]
  }
} {
  tfm.param @embed : !vocab_w {hf = "model.embed_tokens.weight", gguf = "token_embd.weight"}
  tfm.param @final_norm : !norm_w {hf = "model.norm.weight", gguf = "output_norm.weight"}
  tfm.param @lm_head : !vocab_w {
    hf = "lm_head.weight", gguf = "output.weight",
    tied_to = @embed, tied = #tfm.config<"tied">}

  tfm.param @attn_norm per_layer : !norm_w {
    hf = "model.layers.{layer}.input_layernorm.weight", gguf = "blk.{layer}.attn_norm.weight"}
  tfm.param @q_proj per_layer : !q_w {
    hf = "model.layers.{layer}.self_attn.q_proj.weight", gguf = "blk.{layer}.attn_q.weight",
    gguf_rope_heads = #tfm.config<"H">}
  tfm.param @k_proj per_layer : !kv_w {
    hf = "model.layers.{layer}.self_attn.k_proj.weight", gguf = "blk.{layer}.attn_k.weight",
    gguf_rope_heads = #tfm.config<"G">}
  tfm.param @v_proj per_layer : !kv_w {
    hf = "model.layers.{layer}.self_attn.v_proj.weight", gguf = "blk.{layer}.attn_v.weight"}
  tfm.param @o_proj per_layer : !o_w {
    hf = "model.layers.{layer}.self_attn.o_proj.weight", gguf = "blk.{layer}.attn_output.weight"}
  tfm.param @mlp_norm per_layer : !norm_w {
    hf = "model.layers.{layer}.post_attention_layernorm.weight", gguf = "blk.{layer}.ffn_norm.weight"}
  tfm.param @gate_proj per_layer : !up_w {
    hf = "model.layers.{layer}.mlp.gate_proj.weight", gguf = "blk.{layer}.ffn_gate.weight"}
  tfm.param @up_proj per_layer : !up_w {
    hf = "model.layers.{layer}.mlp.up_proj.weight", gguf = "blk.{layer}.ffn_up.weight"}
  tfm.param @down_proj per_layer : !down_w {
    hf = "model.layers.{layer}.mlp.down_proj.weight", gguf = "blk.{layer}.ffn_down.weight"}

  tfm.layer @block(%x: !x, %rope: !rope, %segments: !ids) -> !x {
    // Attention.
    %attn_norm = tfm.use [@attn_norm] : !norm_w
    %h, %h_rstd = tfm.rms_norm %x, %attn_norm {eps = #tfm.config<"eps">} : !x, !norm_w
    %q_proj = tfm.use [@q_proj] : !q_w
    %k_proj = tfm.use [@k_proj] : !kv_w
    %v_proj = tfm.use [@v_proj] : !kv_w
    %q0 = tfm.linear %h, %q_proj : !x, !q_w
    %k0 = tfm.linear %h, %k_proj : !x, !kv_w
    %v = tfm.linear %h, %v_proj : !x, !kv_w
    %q = tfm.rope %q0, %rope {heads = #tfm.config<"H">} : !q, !rope
    %k = tfm.rope %k0, %rope {heads = #tfm.config<"G">} : !kv, !rope
    %o, %lse = tfm.attention(%q, %k, %v) %segments
      {heads = #tfm.config<"H">, kv_heads = #tfm.config<"G">} : (!q, !kv, !kv), !ids
    %o_proj = tfm.use [@o_proj] : !o_w
    %attn = tfm.linear %o, %o_proj : !q, !o_w
    %x1 = tfm.add %x, %attn : !x, !x

    // Feed-forward.
    %mlp_norm = tfm.use [@mlp_norm] : !norm_w
    %m, %m_rstd = tfm.rms_norm %x1, %mlp_norm {eps = #tfm.config<"eps">} : !x, !norm_w
    %gate_proj = tfm.use [@gate_proj] : !up_w
    %up_proj = tfm.use [@up_proj] : !up_w
    %down_proj = tfm.use [@down_proj] : !down_w
    %gate = tfm.linear %m, %gate_proj : !x, !up_w
    %up = tfm.linear %m, %up_proj : !x, !up_w
    %act = tfm.silu %gate : !f
    %f = tfm.mul %act, %up : !f, !f
    %mlp = tfm.linear %f, %down_proj : !f, !down_w
    %x2 = tfm.add %x1, %mlp : !x, !x
    tfm.return %x2 : !x
  }

  // From token ids, their positions in their rows and the index of each row's
  // first token to the last layer's output.
  tfm.func @trunk(%ids: !ids, %positions: !ids, %segments: !ids) -> !x {
    %embed = tfm.use [@embed] : !vocab_w
    %x = tfm.embedding %ids, %embed : !ids, !vocab_w
    %rope = tfm.rope_table %positions {
      theta = #tfm.config<"theta">, scaling = #tfm.config<"rope_scaling">,
      factors = #tfm.config<"rope_factors">} : !ids -> !rope
    %y = tfm.stack(%x) shared(%rope, %segments) kinds = [@block] {depth = #tfm.config<"L">}
      : !x, !rope, !ids -> !x
    tfm.return %y : !x
  }

  // From rows of that output to the logits of the next token.
  tfm.func @head(%x: !x) -> !logits {
    %final_norm = tfm.use [@final_norm] : !norm_w
    %h, %rstd = tfm.rms_norm %x, %final_norm {eps = #tfm.config<"eps">} : !x, !norm_w
    %lm_head = tfm.use [@lm_head] : !vocab_w
    %logits = tfm.linear %h, %lm_head : !x, !vocab_w
    tfm.return %logits : !logits
  }
}
