/** Calls `make` at the first use, and returns its result from then on. */
export function once<Result>(make: () => Result): () => Result {
  let made: Result | undefined
  return () => {
    made ??= make()
    return made
  }
}
