/** In one change: thousands of them still fit into a balance, which must stay a number that a double holds exactly. */
export const MAX_CREDITS = 1_000_000_000_000
