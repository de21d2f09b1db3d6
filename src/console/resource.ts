/** Reading from the service, and changing something there, as hooks. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './api.js'

export interface Resource<Data> {
  /** Undefined until the first answer. Earlier data stays while other data is read. */
  readonly data: Data | undefined
  /** What went wrong with the last request. */
  readonly error: unknown
  readonly isLoading: boolean
  reload(): void
  set(data: Data): void
}

/** Waits before a read is tried again when nothing answers. */
const RETRY_WAITS_MS = [1_000, 2_000, 4_000, 8_000, 15_000] as const

/**
 * Reads when `deps` change. While the service does not answer, and after a 429, it tries again by itself.
 */
export function useResource<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  deps: readonly unknown[],
): Resource<Data> {
  const [data, setData] = useState<Data>()
  const [error, setError] = useState<unknown>()
  const [isLoading, setLoading] = useState(true)
  const [round, setRound] = useState(0)

  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    let timer: number | undefined
    const attempt = async (count: number): Promise<void> => {
      setLoading(true)
      try {
        const loaded = await load(signal)
        if (signal.aborted) return
        setData(() => loaded)
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
  const set = useCallback((value: Data) => setData(() => value), [])
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
  clearError(): void
}

/** Something that a person starts: whether it is in progress, and what went wrong with it. */
export function useAction<Args extends readonly unknown[]>(
  act: (...args: Args) => Promise<unknown>,
): Action<Args> {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const isRunning = useRef(false)
  const isMounted = useRef(true)
  useEffect(
    () => () => {
      isMounted.current = false
    },
    [],
  )
  const run = async (...args: Args): Promise<boolean> => {
    if (isRunning.current) return false
    isRunning.current = true
    setBusy(true)
    setError(undefined)
    try {
      await act(...args)
      return true
    } catch (thrown) {
      if (isMounted.current) setError(thrown)
      return false
    } finally {
      isRunning.current = false
      if (isMounted.current) setBusy(false)
    }
  }
  return { run, isBusy, error, clearError: () => setError(undefined) }
}
