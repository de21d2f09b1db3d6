/** Stores: values shared by components. A component is drawn again when its store changes. */
import { useEffect, useReducer } from 'preact/hooks'

export interface SharedValue<Value> {
  get(): Value
  /** Changes the value. `change` gets the current value, so that overlapping changes do not overwrite each other. */
  set(change: (value: Value) => Value): void
  /** Returns a function that unsubscribes the listener. */
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
    // The value may have changed after the component was drawn and before this effect.
    if (!Object.is(store.get(), drawn)) draw(undefined)
    return store.subscribe(() => draw(undefined))
  }, [store])
  return drawn
}

/** A store of one of several values, kept in this browser under `key`. The first value is the default. */
export function savedStore<Value extends string>(
  key: string,
  values: readonly [Value, ...Value[]],
): SharedValue<Value> {
  let saved: string | null = null
  try {
    saved = localStorage.getItem(key)
  } catch {
    // Throws if the user has disabled storage.
  }
  const store = createStore<Value>(values.find((value) => value === saved) ?? values[0])
  store.subscribe(() => {
    try {
      localStorage.setItem(key, store.get())
    } catch {
      // Without storage, the choice lasts until the page is closed.
    }
  })
  return store
}
