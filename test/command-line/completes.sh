# Completes "inference-proxy deliveries sh" in bash with the script of `completion bash`, and prints what bash would offer.

# The function of the package bash-completion, which bash loads from there in a terminal.
_get_comp_words_by_ref() {
  words=("${COMP_WORDS[@]}")
  cword=$COMP_CWORD
  cur=${words[cword]}
  prev=${words[cword - 1]}
}

source <(inference-proxy completion bash)
COMP_WORDS=(inference-proxy deliveries sh)
COMP_CWORD=2
$(complete -p inference-proxy | sed -E 's/.*-F ([^ ]+).*/\1/')
printf '%s\n' "${COMPREPLY[@]}"
