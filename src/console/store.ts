/** Values that components share, and are drawn again for when they change. */
import { useEffect, useReducer } from 'preact/hooks'

export interface SharedValue<Value> {
  get(): Value
  /** Takes the current value, not one from before a request: overlapping changes are all kept. */
  set(change: (value: Value) => Value): void
  /** Returns the function that unsubscribes. */
  subscribe(listener: () => void): () => void
}

export function createStore<Value>(initial: Value): SharedValue<Value> {
  let current = initial
  const listeners = new Set<() => void>()
  return {
    get: () => current,
    set(change) {
      const next = change(current)
      if (Object.is(next, current)) return
      current = next
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export function useStore<Value>(store: SharedValue<Value>): Value {
  const [, draw] = useReducer((count: number) => count + 1, 0)
  const drawn = store.get()
  useEffect(() => {
    // It may have changed between drawing and this effect.
    if (!Object.is(store.get(), drawn)) draw(undefined)
    return store.subscribe(() => draw(undefined))
  }, [store])
  return drawn
}
