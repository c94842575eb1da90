"""The keys, and the last place where a fence is checked: one nonce carries one intent, whoever asks."""
