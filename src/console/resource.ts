/**
 * Hooks for reads and changes. An action has a name and outlives the component that started it: a component that is drawn
 * later shows it in progress, and the newest one gets the response. Without a component, the outcome becomes a toast.
 */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, messageOf, sessionStore } from './api.js'
import { showToast } from './components/toast.js'
import { createStore, type SharedValue, useStore } from './store.js'

export interface Resource<Data> {
  /** Undefined until the first response. Earlier data stays while other data is loaded. */
  readonly data: Data | undefined
  /** The error of the last request. */
  readonly error: unknown
  readonly isLoading: boolean
  reload(): void
  /** Changes the data, unless `deps` have changed since. */
  set(change: (data: Data) => Data): void
}

/** Waits before retries without a response. */
const RETRY_WAITS_MS = [1_000, 2_000, 4_000, 8_000, 15_000] as const

/**
 * Reads when `deps` change; retries without a response and after a 429. `kept`: a module's store, for data that actions change
 * after the component is gone.
 */
export function useResource<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  deps: readonly unknown[],
  kept?: SharedValue<Data | undefined>,
): Resource<Data> {
  const [own] = useState(() => createStore<Data | undefined>(undefined))
  const store = kept ?? own
  const data = useStore(store)
  const [error, setError] = useState<unknown>()
  const [isLoading, setLoading] = useState(true)
  const [round, setRound] = useState(0)
  const reading = useMemo(() => ({ isOver: false }), deps)

  useEffect(
    () => () => {
      reading.isOver = true
    },
    [reading],
  )
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    let timer: ReturnType<typeof setTimeout> | undefined
    const attempt = async (count: number): Promise<void> => {
      setLoading(true)
      const before = store.get()
      try {
        const loaded = await load(signal)
        if (signal.aborted) return
        // Changed meanwhile: the response may be from before the change.
        if (!Object.is(store.get(), before)) return await attempt(0)
        store.set(() => loaded)
        setError(undefined)
      } catch (thrown) {
        if (signal.aborted) return
        setError(thrown)
        const wait = retryWaitMs(thrown, count)
        if (wait !== undefined) timer = setTimeout(() => void attempt(count + 1), wait)
      }
      setLoading(false)
    }
    void attempt(0)
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [...deps, round])

  const reload = useCallback(() => setRound((count) => count + 1), [])
  const set = useCallback(
    (change: (data: Data) => Data) => {
      if (!reading.isOver) store.set((now) => (now === undefined ? now : change(now)))
    },
    [reading],
  )
  return { data, error, isLoading, reload, set }
}

function retryWaitMs(thrown: unknown, count: number): number | undefined {
  if (!(thrown instanceof ApiError)) return undefined
  if (thrown.status === 429) return (thrown.retryAfterS ?? 10) * 1000
  return thrown.code === 'network' ? RETRY_WAITS_MS[Math.min(count, RETRY_WAITS_MS.length - 1)] : undefined
}

export interface ActionState {
  readonly isBusy: boolean
  /** Of the last attempt. */
  readonly error: unknown
}

const IDLE: ActionState = { isBusy: false, error: undefined }

export const actionStore = createStore<ReadonlyMap<string, ActionState>>(new Map())

export const actionState = (name: string): ActionState => actionStore.get().get(name) ?? IDLE

function setActionState(name: string, state: ActionState): void {
  actionStore.set((states) => {
    const others = new Map(states)
    if (state === IDLE) others.delete(name)
    else others.set(name, state)
    return others
  })
}

/** A component that shows an action. */
export interface ActionViewer {
  readonly name: string
  /** Receives the response. */
  readonly onDone: (answer: unknown) => void
}

const viewers = new Set<ActionViewer>()

const viewerOf = (name: string): ActionViewer | undefined =>
  [...viewers].findLast((each) => each.name === name)

/** Returns the function that removes it. The last viewer clears the error. */
export function addViewer(viewer: ActionViewer): () => void {
  const { name } = viewer
  viewers.add(viewer)
  return () => {
    viewers.delete(viewer)
    if (viewerOf(name) === undefined && actionState(name).error !== undefined) setActionState(name, IDLE)
  }
}

export interface ActionHandlers<Answer> {
  /** Sends a request, and changes stores by the answer. Draws nothing and navigates nowhere. */
  act(): Promise<Answer>
  /** Called when no component shows the action. */
  onMissed?: ((answer: Answer) => void) | undefined
  /** The same for an error. */
  onMissedError(error: unknown): void
}

/** Resolves to whether it succeeded. Does nothing while an action of that name is in progress. */
export async function runAction<Answer>(name: string, handlers: ActionHandlers<Answer>): Promise<boolean> {
  if (actionState(name).isBusy) return false
  setActionState(name, { isBusy: true, error: undefined })
  let answer: Answer
  try {
    answer = await handlers.act()
  } catch (error) {
    const isShown = viewerOf(name) !== undefined
    setActionState(name, isShown ? { isBusy: false, error } : IDLE)
    if (!isShown && sessionStore.get()) handlers.onMissedError(error)
    return false
  }
  setActionState(name, IDLE)
  const viewer = viewerOf(name)
  if (viewer !== undefined) viewer.onDone(answer)
  else whenSignedIn(() => handlers.onMissed?.(answer))
  return true
}

/** Calls `act` now, or when the user is back after the session has expired. */
function whenSignedIn(act: () => void): void {
  if (sessionStore.get()) {
    act()
    return
  }
  const end = sessionStore.subscribe(() => {
    if (!sessionStore.get()) return
    end()
    act()
  })
}

export interface Action<Args extends readonly unknown[]> {
  /** Resolves to whether it succeeded. A second call while one is in progress does nothing. */
  run(...args: Args): Promise<boolean>
  readonly isBusy: boolean
  readonly error: unknown
}

export interface ActionOptions<Answer> {
  /** Components with the same name, as `rotate 7`, share the action. */
  readonly name?: string
  /** Navigates or closes a dialog. Not called when the component is gone. */
  readonly onDone?: (answer: Answer) => void
  /** Called instead when no component shows the action. */
  readonly onMissed?: (answer: Answer) => void
  /** The same for an error; a toast by default. */
  readonly onMissedError?: (error: unknown) => void
}

let unnamed = 0

/**
 * A change that a user starts: its progress and its error. `act` may change stores; changes of the component belong in
 * `onDone`.
 */
export function useAction<Args extends readonly unknown[], Answer>(
  act: (...args: Args) => Promise<Answer>,
  options: ActionOptions<Answer> = {},
): Action<Args> {
  const [ownName] = useState(() => `unnamed ${++unnamed}`)
  const name = options.name ?? ownName
  useStore(actionStore)
  // Keeps the newest function without adding a viewer for each draw.
  const latest = useRef(options)
  latest.current = options
  useEffect(() => addViewer({ name, onDone: (answer) => latest.current.onDone?.(answer as Answer) }), [name])
  const run = (...args: Args): Promise<boolean> =>
    runAction(name, {
      act: () => act(...args),
      onMissed: options.onMissed,
      onMissedError: options.onMissedError ?? ((error) => showToast(messageOf(error), 'bad')),
    })
  return { ...actionState(name), run }
}
