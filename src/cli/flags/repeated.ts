/** For commander's `argParser`: a flag that may be given several times, and then is a list. */
export const repeated = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
]
