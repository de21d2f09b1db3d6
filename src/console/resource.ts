/**
 * Hooks for reads and changes. An action has a name and continues after the component that started it is removed. A
 * component that uses the same name later shows the action as busy, and the newest component receives the response. If
 * no component is left, a toast shows the result.
 */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, isOutage, sessionStore } from './api.js'
import { toastError } from './components/toast.js'
import { usePolling, useShownError } from './polling.js'
import { createStore, type SharedValue, useStore } from './store.js'

export interface Resource<Data> {
  /** Undefined until the first response. Keeps the previous data while new data is loading. */
  readonly data: Data | undefined
  /** Error of the last request. Undefined while the notice about the connection explains it. */
  readonly error: unknown
  readonly isLoading: boolean
  reload(): void
  /** Changes the data. Does nothing if `deps` have changed since this function was returned. */
  set(change: (data: Data) => Data): void
}

/**
 * Loads data when the component is first drawn and when `deps` change. Retries if there was no response, and after a
 * 429. `kept` is a store that outlives the component, for data that actions can change after the component is removed.
 */
export function useResource<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  deps: readonly unknown[],
  kept?: SharedValue<Data | undefined>,
): Resource<Data> {
  const [own] = useState(() => createStore<Data | undefined>(undefined))
  const store = kept ?? own
  const data = useStore(store)
  const [isLoading, setLoading] = useState(true)
  const [round, setRound] = useState(0)
  const reading = useMemo(() => ({ isOver: false }), deps)

  useEffect(
    () => () => {
      reading.isOver = true
    },
    [reading],
  )
  const { error } = usePolling(
    {
      async ask(signal) {
        setLoading(true)
        try {
          // Read again if the data was changed during the request: the response may be older than the change.
          for (;;) {
            const before = store.get()
            const loaded = await load(signal)
            signal.throwIfAborted()
            if (!Object.is(store.get(), before)) continue
            store.set(() => loaded)
            return 'done'
          }
        } finally {
          if (!signal.aborted) setLoading(false)
        }
      },
      isFinal: (thrown) => !(isOutage(thrown) || (thrown instanceof ApiError && thrown.status === 429)),
    },
    [...deps, round],
  )

  const reload = useCallback(() => setRound((count) => count + 1), [])
  const set = useCallback(
    (change: (data: Data) => Data) => {
      if (!reading.isOver) store.set((now) => (now === undefined ? now : change(now)))
    },
    [reading],
  )
  return { data, error, isLoading, reload, set }
}

export interface ActionState {
  readonly isBusy: boolean
  /** Error of the last attempt. */
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

/** A component that shows the state of an action. */
export interface ActionViewer {
  readonly name: string
  /** Called with the response. */
  readonly onDone: (answer: unknown) => void
}

const viewers = new Set<ActionViewer>()

const viewerOf = (name: string): ActionViewer | undefined =>
  [...viewers].findLast((each) => each.name === name)

/** Returns a function that removes the viewer. When the last viewer of an action is removed, its error is cleared. */
export function addViewer(viewer: ActionViewer): () => void {
  const { name } = viewer
  viewers.add(viewer)
  return () => {
    viewers.delete(viewer)
    if (viewerOf(name) === undefined && actionState(name).error !== undefined) setActionState(name, IDLE)
  }
}

export interface ActionHandlers<Answer> {
  /** Sends the request and updates stores from the response. Must not draw or navigate: its component may be gone. */
  act(): Promise<Answer>
  /** Called with the response if no component shows the action. */
  onMissed?: ((answer: Answer) => void) | undefined
  /** Called with the error if no component shows the action. */
  onMissedError(error: unknown): void
}

/** Resolves to true if the action succeeded. Resolves to false without a request if the action is already running. */
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

/** Calls `act` now, or after the next sign-in if the session has expired. */
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

/** `error` is undefined while the notice about the connection explains it. */
export interface Action<Args extends readonly unknown[]> extends ActionState {
  /** Resolves to true if the action succeeded. Resolves to false without a request if the action is already running. */
  run(...args: Args): Promise<boolean>
}

export interface ActionOptions<Answer> {
  /** Components that use the same name, such as `archive 7`, share the action. */
  readonly name?: string
  /** Called with the response, for example to navigate or to close a dialog. Not called if the component is removed. */
  readonly onDone?: (answer: Answer) => void
  /** Called instead of `onDone` if no component shows the action. */
  readonly onMissed?: (answer: Answer) => void
  /** Called with the error if no component shows the action. By default, a toast shows the error. */
  readonly onMissedError?: (error: unknown) => void
}

let unnamed = 0

/**
 * Runs a change that the user starts, and returns its progress and error. `act` may update stores. Put changes of the
 * component itself in `onDone`, since the component may be removed before the response.
 */
export function useAction<Args extends readonly unknown[], Answer>(
  act: (...args: Args) => Promise<Answer>,
  options: ActionOptions<Answer> = {},
): Action<Args> {
  const [ownName] = useState(() => `unnamed ${++unnamed}`)
  const name = options.name ?? ownName
  useStore(actionStore)
  // Lets the viewer call the newest `onDone`, without adding a new viewer each time the component is drawn.
  const latest = useRef(options)
  latest.current = options
  useEffect(() => addViewer({ name, onDone: (answer) => latest.current.onDone?.(answer as Answer) }), [name])
  const run = (...args: Args): Promise<boolean> =>
    runAction(name, {
      act: () => act(...args),
      onMissed: options.onMissed,
      onMissedError: options.onMissedError ?? toastError,
    })
  const { isBusy, error } = actionState(name)
  return { isBusy, error: useShownError(error), run }
}
