/**
 * Timeout of a test for an event that may never happen. Only prevents endless waiting: even a slow machine must not
 * reach it.
 */
export const PATIENCE_MS = 120_000
