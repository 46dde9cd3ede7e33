// Two kinds of layers that have different parameters: one looks back a window
// and has a gated feed-forward part, the other sees all tokens of its row and
// has a plain one. The names of the checkpoint are the test's own.

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

tfm.architecture @two_kinds attributes {
  hf = ["TwoKinds"],
  gguf = "two_kinds",
  config = {
    D = ["hidden_size", "none"], F = ["intermediate_size", "none"],
    H = ["num_attention_heads", "none"], G = ["num_key_value_heads", "none"],
    E = ["hidden_size / num_attention_heads", "none"],
    L = ["num_hidden_layers", "none"], V = ["vocab_size", "none"],
    eps = ["rms_norm_eps", "none"], theta = ["rope_theta", "none"],
    window = ["sliding_window", "none"], layer_types = ["layer_types", "none"]
  }
} {
  tfm.param @embed : !vocab_w {hf = "embed"}
  tfm.param @final_norm : !norm_w {hf = "final_norm"}
  tfm.param @head_w : !vocab_w {hf = "head"}
  tfm.param @attn_norm per_layer : !norm_w {hf = "{layer}.attn_norm"}
  tfm.param @q_proj per_layer : !q_w {hf = "{layer}.q"}
  tfm.param @k_proj per_layer : !kv_w {hf = "{layer}.k"}
  tfm.param @v_proj per_layer : !kv_w {hf = "{layer}.v"}
  tfm.param @o_proj per_layer : !o_w {hf = "{layer}.o"}
  tfm.param @mlp_norm per_layer : !norm_w {hf = "{layer}.mlp_norm"}
  tfm.param @gate_proj per_layer : !up_w {hf = "{layer}.gate"}
  tfm.param @up_proj per_layer : !up_w {hf = "{layer}.up"}
  tfm.param @in_proj per_layer : !up_w {hf = "{layer}.in"}
  tfm.param @down_proj per_layer : !down_w {hf = "{layer}.down"}

  tfm.layer @sliding(%x: !x, %rope: !rope, %segments: !ids) -> !x {
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
      {heads = #tfm.config<"H">, kv_heads = #tfm.config<"G">, window = #tfm.config<"window">}
      : (!q, !kv, !kv), !ids
    %o_proj = tfm.use [@o_proj] : !o_w
    %attn = tfm.linear %o, %o_proj : !q, !o_w
    %x1 = tfm.add %x, %attn : !x, !x

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

  tfm.layer @full(%x: !x, %rope: !rope, %segments: !ids) -> !x {
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

    %mlp_norm = tfm.use [@mlp_norm] : !norm_w
    %m, %m_rstd = tfm.rms_norm %x1, %mlp_norm {eps = #tfm.config<"eps">} : !x, !norm_w
    %in_proj = tfm.use [@in_proj] : !up_w
    %down_proj = tfm.use [@down_proj] : !down_w
    %in = tfm.linear %m, %in_proj : !x, !up_w
    %f = tfm.silu %in : !f
    %mlp = tfm.linear %f, %down_proj : !f, !down_w
    %x2 = tfm.add %x1, %mlp : !x, !x
    tfm.return %x2 : !x
  }

  tfm.func @trunk(%ids: !ids, %positions: !ids, %segments: !ids) -> !x {
    %embed = tfm.use [@embed] : !vocab_w
    %x = tfm.embedding %ids, %embed : !ids, !vocab_w
    %rope = tfm.rope_table %positions {theta = #tfm.config<"theta">} : !ids -> !rope
    %y = tfm.stack(%x) shared(%rope, %segments) kinds = [@sliding, @full]
      {depth = #tfm.config<"L">, map = #tfm.config<"layer_types">,
       types = ["sliding_attention", "full_attention"]} : !x, !rope, !ids -> !x
    tfm.return %y : !x
  }

  tfm.func @head(%x: !x) -> !logits {
    %final_norm = tfm.use [@final_norm] : !norm_w
    %h, %rstd = tfm.rms_norm %x, %final_norm {eps = #tfm.config<"eps">} : !x, !norm_w
    %head_w = tfm.use [@head_w] : !vocab_w
    %logits = tfm.linear %h, %head_w : !x, !vocab_w
    tfm.return %logits : !logits
  }
}
