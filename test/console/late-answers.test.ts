/** Answers that come after the session has expired, a component was left or a form was changed. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ApiError, connectionStore, nextReadNumber, sessionStore, setBalance } from '../../src/console/api.js'
import { type PollResult, startPolling } from '../../src/console/polling.js'
import { actionState, addViewer, runAction } from '../../src/console/resource.js'
import { createDrafts, EMPTY_DRAFT, type Form } from '../../src/console/runs/drafts.js'
import type { Reference } from '../../src/console/runs/references.js'
import { createStore } from '../../src/console/store.js'
import type { Session } from '../../src/protocol/console.js'

const session = (email: string, balance = 100): Session => ({
  ...{ id: `session of ${email}`, email, role: 'owner', account: { name: 'acme', balance, banned: false } },
  ...{ can_set_password: false, has_password: true, expires_at: '2026-01-08T00:00:00.000Z' },
  ...{ models: { image: 'm', video: 'v' }, base_url: 'http://127.0.0.1:7878' },
})
const signIn = () => sessionStore.set(() => session('ann'))
const expire = () => sessionStore.set(() => null)

beforeEach(signIn)
afterEach(expire)

/** An answer that the test gives. */
function deferred<Value>() {
  let resolve: (value: Value) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<Value>((onValue, onError) => {
    resolve = onValue
    reject = onError
  })
  return { promise, resolve, reject }
}

it('a store keeps both of two overlapping changes', () => {
  const store = createStore<readonly string[]>([])
  for (const each of ['a', 'b']) store.set((all) => [...all, each])
  expect(store.get()).toEqual(['a', 'b'])
})

describe('a page whose browser has signed in as another user', () => {
  /** A page of its own, which is not used again: modules keep that it is about to reload. */
  async function openPage(fragment: string) {
    vi.resetModules()
    const reload = vi.fn()
    const location = { hash: fragment, reload }
    vi.stubGlobal('location', location)
    vi.stubGlobal('window', new EventTarget())
    vi.stubGlobal('HashChangeEvent', Event)
    vi.stubGlobal('history', {
      replaceState: (_: unknown, __: string, next: string) => {
        location.hash = next
      },
    })
    const api = await import('../../src/console/api.js')
    const { createDrafts: create } = await import('../../src/console/runs/drafts.js')
    api.adoptSession(session('ann'))
    return { api, create, location, reload }
  }
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.resetModules()
  })

  it.each([
    ['#/runs?search=secret', '#/runs'],
    ['#/runs/run_1', '#/runs'],
    ['#/link/token', '#/link/token'],
  ])('clears itself and reloads without the content of the other user: %s', async (before, after) => {
    const { api, location, reload } = await openPage(before)
    api.adoptSession(session('bob'))
    expect([api.sessionStore.get(), location.hash, reload.mock.calls.length]).toEqual([undefined, after, 1])
  })

  it('ignores late responses, sends no requests and writes no drafts', async () => {
    const { api, create } = await openPage('#/new')
    const answer = deferred<Response>()
    const sent = vi.fn(() => answer.promise)
    vi.stubGlobal('fetch', sent)
    vi.stubGlobal('document', { baseURI: 'http://127.0.0.1:7878/' })
    const settled = vi.fn()
    void api.request('GET', '/late').then(settled, settled)
    const written = vi.fn()
    const drafts = create({ read: () => undefined, write: written })
    api.adoptSession(session('bob'))
    answer.resolve(Response.json({ of: 'ann' }))
    void api.request('POST', '/later').then(settled, settled)
    drafts.edit({ name: 'new', start: EMPTY_DRAFT }, () => ({ values: { prompt: 'of ann' } }))
    await new Promise(setImmediate)
    expect([sent.mock.calls.length, settled.mock.calls, written.mock.calls]).toEqual([1, [], []])
  })

  it('does not reload when the same user has another session', async () => {
    const { api, reload } = await openPage('#/runs')
    api.sessionStore.set(() => null)
    api.adoptSession({ ...session('ann'), id: 'another' })
    expect([api.sessionStore.get()?.id, reload.mock.calls.length]).toEqual(['another', 0])
  })
})

describe('the balance', () => {
  const balance = () => sessionStore.get()?.account.balance

  it('comes from the request that was sent last, in any order of the responses', () => {
    const [first, second] = [nextReadNumber(), nextReadNumber()]
    setBalance(97, second)
    setBalance(98, first)
    expect(balance()).toBe(97)
    setBalance(96, nextReadNumber())
    expect(balance()).toBe(96)
  })
})

describe('an action', () => {
  const told: unknown[] = []
  const shown: unknown[] = []
  beforeEach(() => {
    told.length = 0
    shown.length = 0
  })
  const view = (name = 'create') => addViewer({ name, onDone: (each) => shown.push(each) })
  const start = <Answer>(answer: Promise<Answer>, name = 'create') =>
    runAction(name, {
      act: () => answer,
      onMissed: (each) => told.push(each),
      onMissedError: (error) => told.push(error),
    })

  it('reports its success after the user of an expired session signs in again', async () => {
    const answer = deferred<string>()
    const started = start(answer.promise)
    expire()
    answer.resolve('done')
    await started
    expect(told).toEqual([])
    signIn()
    expect(told).toEqual(['done'])
  })

  it('stays in progress when its component is left and shown again, and cannot start twice', async () => {
    const answer = deferred<string>()
    const leave = view()
    const first = start(answer.promise)
    leave()
    const leaveAgain = view()
    expect(actionState('create').isBusy).toBe(true)
    expect(await start(Promise.resolve('second'))).toBe(false)
    answer.resolve('first')
    expect(await first).toBe(true)
    expect([shown, told, actionState('create').isBusy]).toEqual([['first'], [], false])
    leaveAgain()
  })

  it.each([
    ['an answer', (answer: ReturnType<typeof deferred<string>>) => answer.resolve('done')],
    ['an error', (answer: ReturnType<typeof deferred<string>>) => answer.reject('done')],
  ])('reports %s as a message when no component shows it any more', async (_, end) => {
    const answer = deferred<string>()
    const leave = view()
    const started = start(answer.promise)
    leave()
    end(answer)
    await started
    expect([shown, told]).toEqual([[], ['done']])
    expect(actionState('create')).toEqual({ isBusy: false, error: undefined })
  })

  it('reports no error while the session has expired', async () => {
    const started = start(Promise.reject('no'))
    expire()
    await started
    signIn()
    expect(told).toEqual([])
  })

  it('keeps its error until its component is left', async () => {
    const leave = view('archive 7')
    expect(await start(Promise.reject('no'), 'archive 7')).toBe(false)
    expect([actionState('archive 7').error, told]).toEqual(['no', []])
    leave()
    expect(actionState('archive 7').error).toBeUndefined()
  })
})

describe('a draft', () => {
  const saved = new Map<string, string>()
  beforeEach(() => saved.clear())
  const create = () =>
    createDrafts({
      read: () => undefined,
      write: (name, draft) =>
        draft === undefined ? saved.delete(name) : saved.set(name, draft.values.prompt ?? ''),
    })
  const form: Form = { name: 'new', start: EMPTY_DRAFT }
  const image: Reference = { id: 1, name: 'a.png', source: 'data:,', bytes: 1, isUrl: false }
  let ids = 0
  const parts = <Run>(answer: Promise<Run>, sent: string[] = []) => ({
    ...{ nowMs: 0, newKey: () => `key ${++ids}` },
    request: (_: unknown, id: string) => {
      sent.push(id)
      return answer
    },
    mayExist: (error: unknown) => error === 'lost',
    refusesInput: (error: unknown) => error === 'invalid',
  })

  it('disappears when its run was created, unless it was edited meanwhile', async () => {
    for (const isChanged of [false, true]) {
      const drafts = create()
      const answer = deferred<string>()
      drafts.edit(form, () => ({ values: { prompt: 'a fox' } }))
      const sending = drafts.send(form, parts(answer.promise))
      if (isChanged) drafts.edit(form, () => ({ values: { prompt: 'a wolf' } }))
      answer.resolve('run')
      expect(await sending).toEqual({ run: 'run', isChanged })
      expect(drafts.store.get().get('new')?.values).toEqual(isChanged ? { prompt: 'a wolf' } : undefined)
      expect([...saved.values()]).toEqual(isChanged ? ['a wolf'] : [])
    }
  })

  it('keeps its idempotency key until its outcome is known', async () => {
    const drafts = create()
    const sent: string[] = []
    drafts.edit(form, () => ({ values: { prompt: 'a fox' } }))
    for (const error of ['lost', 'refused', 'lost'])
      await expect(drafts.send(form, parts(Promise.reject(error), sent))).rejects.toBe(error)
    await drafts.send(form, parts(Promise.resolve('run'), sent))
    expect(new Set(sent).size).toBe(1)
    drafts.edit(form, () => ({ values: { prompt: 'a fox' } }))
    for (const error of ['lost', 'invalid'])
      await expect(drafts.send(form, parts(Promise.reject(error), sent))).rejects.toBe(error)
    expect(new Set(sent).size).toBe(2)
    // The first of these requests may have been accepted.
    expect(drafts.store.get().get('new')?.mayExist).toBe(true)
    await drafts.send(form, parts(Promise.resolve('run'), sent))
    expect(new Set(sent).size).toBe(3)
  })

  it('says that the run may exist while the outcome of a request is unknown', async () => {
    const drafts = create()
    const mayExist = () => drafts.store.get().get('new')?.mayExist
    for (const [error, expected] of [
      ['refused', false],
      ['lost', true],
      ['refused', true],
    ] as const) {
      drafts.edit(form, () => ({ values: { prompt: error } }))
      await expect(drafts.send(form, parts(Promise.reject(error)))).rejects.toBe(error)
      expect(mayExist()).toBe(expected)
    }
    await drafts.send(form, parts(Promise.resolve('run')))
    expect(mayExist()).toBeUndefined()
  })

  it('takes images that finish loading late, but not those of the previous draft', async () => {
    const drafts = create()
    const [early, late] = [deferred<readonly Reference[]>(), deferred<readonly Reference[]>()]
    const first = drafts.addImages(form, () => early.promise)
    const second = drafts.addImages(form, () => late.promise)
    drafts.edit(form, () => ({ values: { prompt: 'a fox' } }))
    expect(drafts.store.get().get('new')?.reading).toBe(2)
    early.resolve([image])
    expect(await first).toBe(true)
    expect(drafts.store.get().get('new')).toMatchObject({ references: [image], reading: 1 })
    drafts.forget('new')
    drafts.edit(form, () => ({ values: { prompt: 'a wolf' } }))
    late.resolve([image])
    expect(await second).toBe(false)
    expect(drafts.store.get().get('new')).toMatchObject({ references: [], reading: 0 })
  })

  it('belongs to the run that its form was filled from, and survives a new session', () => {
    const drafts = create()
    drafts.edit({ ...form, name: 'run_1' }, () => ({ values: { prompt: 'a boat' } }))
    expect([drafts.load('run_1'), drafts.load('new')]).toEqual([true, false])
    expire()
    signIn()
    expect(drafts.store.get().get('run_1')?.values).toEqual({ prompt: 'a boat' })
  })
})

describe('polling', () => {
  /** Requests that the test answers, and the timer that is set. */
  function poll(isFinal = (_: unknown) => false) {
    const asked: ReturnType<typeof deferred<PollResult>>[] = []
    const errors: unknown[] = []
    const document = Object.assign(new EventTarget(), { visibilityState: 'visible' })
    let timer: { readonly act: () => void; readonly ms: number } | undefined
    vi.stubGlobal('document', document)
    vi.stubGlobal('window', new EventTarget())
    vi.stubGlobal('setTimeout', (act: () => void, ms: number) => {
      timer = { act, ms }
    })
    vi.stubGlobal('clearTimeout', () => {
      timer = undefined
    })
    const poller = startPolling({
      ask() {
        const answer = deferred<PollResult>()
        asked.push(answer)
        return answer.promise
      },
      isFinal,
      onError: (error) => errors.push(error),
    })
    const show = (visibilityState: 'visible' | 'hidden') => {
      Object.assign(document, { visibilityState })
      document.dispatchEvent(new Event('visibilitychange'))
    }
    const answer = async (found: PollResult | { readonly error: unknown }) => {
      const last = asked.at(-1)
      if (typeof found === 'string') last?.resolve(found)
      else last?.reject(found.error)
      await last?.promise.catch(() => undefined)
      await Promise.resolve()
    }
    const elapse = () => {
      const { act } = timer ?? {}
      timer = undefined
      act?.()
    }
    return { poller, asked, errors, show, answer, elapse, waitMs: () => timer?.ms }
  }
  afterEach(() => vi.unstubAllGlobals())

  it('continues after any error with a longer delay each time, and reports it', async () => {
    const { asked, errors, answer, elapse, waitMs } = poll()
    const waits: unknown[] = []
    const limited = new ApiError({ status: 429, code: 'RATE_LIMITED', message: 'Limited', retryAfterS: 9 })
    const failures = ['404 of a proxy', '403 of a proxy', limited]
    for (const error of failures) {
      await answer({ error })
      waits.push(waitMs())
      elapse()
    }
    await answer('unfinished')
    expect([waits, waitMs()]).toEqual([[2_000, 4_000, 9_000], 2_000])
    expect(errors).toEqual([...failures, undefined])
    expect(asked).toHaveLength(4)
  })

  it('stops when nothing is left to poll, and resumes on request after a final error', async () => {
    const { poller, asked, answer, waitMs } = poll((error) => error === 'missing')
    await answer({ error: 'missing' })
    expect(waitMs()).toBeUndefined()
    poller.askNow()
    expect(asked).toHaveLength(2)
    await answer('done')
    poller.askNow()
    expect([asked.length, waitMs()]).toEqual([2, undefined])
  })

  it('ignores a response after it was stopped', async () => {
    const { poller, errors, answer, waitMs } = poll()
    poller.stop()
    await answer({ error: 'late' })
    expect([errors, waitMs()]).toEqual([[], undefined])
  })

  it('pauses while the page is hidden, and polls at once when it is shown', async () => {
    const { asked, show, answer, waitMs } = poll()
    show('hidden')
    await answer('unfinished')
    expect(waitMs()).toBeUndefined()
    show('visible')
    await answer('unfinished')
    expect([asked.length, waitMs()]).toEqual([2, 2_000])
    show('hidden')
    expect(waitMs()).toBeUndefined()
  })

  it('asks once when the service answers again, and not again before a success', async () => {
    const { asked, answer } = poll()
    const outage = new ApiError({ status: 0, code: 'network', message: 'No answer' })
    const reconnect = () => {
      connectionStore.set(() => 'lost')
      connectionStore.set(() => 'ok')
    }
    await answer({ error: outage })
    reconnect()
    expect(asked).toHaveLength(2)
    await answer({ error: outage })
    reconnect()
    expect(asked).toHaveLength(2)
  })
})
