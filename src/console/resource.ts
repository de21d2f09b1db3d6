/** Reading from the service, and changing something there, as hooks. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { actionState, actionStore, addViewer, runAction } from './actions.js'
import { ApiError, messageOf } from './api.js'
import { showToast } from './components/toast.js'
import { currentUser } from './session-store.js'
import { createStore, type Store, useStore } from './store.js'

export interface Resource<Data> {
  /** Undefined until the first answer. Earlier data stays while other data is read. */
  readonly data: Data | undefined
  /** What went wrong with the last request. */
  readonly error: unknown
  readonly isLoading: boolean
  reload(): void
  /** Changes what was read with the `deps` it was drawn with; nothing when others have been read since. */
  set(change: (data: Data) => Data): void
}

/** Waits before a read is tried again when nothing answers. */
const RETRY_WAITS_MS = [1_000, 2_000, 4_000, 8_000, 15_000] as const

/**
 * Reads when `deps` change. While the service does not answer, and after a 429, it tries again by itself. `kept`: a store of the module
 * for data that changes by actions which outlive the component; without it the data goes with the component.
 */
export function useResource<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  deps: readonly unknown[],
  kept?: Store<Data | undefined>,
): Resource<Data> {
  const [own] = useState(() => createStore<Data | undefined>(undefined))
  const store = kept ?? own
  const data = useStore(store)
  const [error, setError] = useState<unknown>()
  const [isLoading, setLoading] = useState(true)
  const [round, setRound] = useState(0)
  // Of the data that these deps have.
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
    let timer: number | undefined
    const attempt = async (count: number): Promise<void> => {
      setLoading(true)
      const before = store.get()
      try {
        const loaded = await load(signal)
        if (signal.aborted) return
        // It was changed meanwhile, and what was read may be from before the change.
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

export interface Action<Args extends readonly unknown[]> {
  /** Resolves to whether it succeeded. A second call while one is in progress does nothing. */
  run(...args: Args): Promise<boolean>
  readonly isBusy: boolean
  readonly error: unknown
}

export interface ActionOptions<Answer> {
  /** With a name, as `rotate 7`, every component with this action shows the same one. */
  readonly name?: string
  /** What the component does with the answer: go to a page, close a dialog. Not called when the component is gone. */
  readonly onDone?: (answer: Answer) => void
  /** Called in its place when no component shows the action any more. */
  readonly onMissed?: (answer: Answer) => void
  /** The same for an error. Without it, its message is a toast. */
  readonly onMissedError?: (error: unknown) => void
}

let unnamed = 0

/**
 * Something that a person starts: whether it is in progress, and what went wrong with it, as a toast when no component shows it any more.
 * `act` may change stores; what concerns the component is for `onDone`.
 */
export function useAction<Args extends readonly unknown[], Answer>(
  act: (...args: Args) => Promise<Answer>,
  options: ActionOptions<Answer> = {},
): Action<Args> {
  const [ownName] = useState(() => `unnamed ${++unnamed}`)
  const name = options.name ?? ownName
  useStore(actionStore)
  // The newest function, without a new viewer each time it is drawn.
  const latest = useRef(options)
  latest.current = options
  useEffect(
    () =>
      addViewer({
        name,
        user: currentUser(),
        onDone: (answer) => latest.current.onDone?.(answer as Answer),
      }),
    [name],
  )
  const run = (...args: Args): Promise<boolean> =>
    runAction(name, {
      act: () => act(...args),
      onMissed: options.onMissed,
      onMissedError: options.onMissedError ?? ((error) => showToast(messageOf(error), 'bad')),
    })
  return { ...actionState(name), run }
}
