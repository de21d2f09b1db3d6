/** A value that components share: they are drawn again when it changes. */
import { useEffect, useReducer } from 'preact/hooks'

export interface Store<Value> {
  get(): Value
  /** Changes the value of now, not one that was read before a request: changes that overlap lose nothing. */
  set(change: (value: Value) => Value): void
  /** Returns the function that ends it. */
  subscribe(listener: () => void): () => void
}

export function createStore<Value>(initial: Value): Store<Value> {
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

export function useStore<Value>(store: Store<Value>): Value {
  const [, draw] = useReducer((count: number) => count + 1, 0)
  const drawn = store.get()
  useEffect(() => {
    // It may have changed between drawing and this effect.
    if (!Object.is(store.get(), drawn)) draw(undefined)
    return store.subscribe(() => draw(undefined))
  }, [store])
  return drawn
}
