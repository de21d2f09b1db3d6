/** What the database tells: credits, runs that ended, and the length of the queue. */
import type { Clock } from '../../host/clock.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { settlesWithin } from '../settles-within.js'
import type { FailedRuns } from '../store/contract.js'
import type { ServiceStore } from '../store/service-store.js'
import type { Instruments, OnScrape } from './instruments.js'

export interface StoreMetrics {
  /** The same store, which counts what it does. */
  observeStore(store: ServiceStore): ServiceStore
}

/** A scrape waits no longer for the length of the queue. Prometheus gives up after 10 s. */
const QUEUE_LIMIT_MS = 1_000

export const createStoreMetrics = (
  {
    creditsCharged,
    creditsRefunded,
    runsFinished,
    queueLength,
  }: Pick<Instruments, 'creditsCharged' | 'creditsRefunded' | 'runsFinished' | 'queueLength'>,
  onScrape: OnScrape,
  clock: Pick<Clock, 'sleep'>,
): StoreMetrics => ({
  observeStore(store) {
    function countFailures(failures: FailedRuns | undefined): FailedRuns | undefined {
      if (failures === undefined) return undefined
      runsFinished.inc({ status: 'failed' }, failures.runs)
      creditsRefunded.inc(failures.refunded)
      return failures
    }

    let reading: Promise<Readonly<Record<Kind, number>>> | undefined
    /** Scrapes share one query, so that they do not wait in line at a database that hangs. */
    function readQueue() {
      reading ??= store.queueLengths().finally(() => {
        reading = undefined
      })
      return reading
    }

    onScrape(async () => {
      const query = readQueue()
      const isRead = await settlesWithin(QUEUE_LIMIT_MS, query, clock).catch(() => false)
      // An old length would look like a queue that stands still.
      if (!isRead) return queueLength.reset()
      const lengths = await query
      for (const kind of KINDS) queueLength.set({ kind }, lengths[kind])
    })

    return {
      ...store,
      async addRun(run) {
        const added = await store.addRun(run)
        if ('id' in added && added.id === run.id) creditsCharged.inc(run.price)
        return added
      },
      async finishRun(...args) {
        const isFinished = await store.finishRun(...args)
        if (isFinished) runsFinished.inc({ status: 'succeeded' })
        return isFinished
      },
      failRun: async (...args) => countFailures(await store.failRun(...args)),
      recordCrash: async (...args) => countFailures(await store.recordCrash(...args)),
      reapWorker: async (...args) => countFailures(await store.reapWorker(...args)),
    }
  },
})
