/** Rows of what the console reads to the values of the contract, for both databases. */
import type { StoredRun } from '../stored-run.js'
import type { DaySpend, KeyName, ListedEntry, ListedRun, LostAttempt } from './console-store.js'
import { isSet, ledgerEntryOfRow, type Row, textOr } from './shared-rows.js'

export const DAY_MS = 86_400_000

const keyNameOf = ({ key_id, key_name }: Row): KeyName | undefined =>
  key_id === null ? undefined : { id: Number(key_id), name: String(key_name) }

export const listedRunOf = (row: Row, run: Omit<StoredRun, 'input'>): ListedRun => ({
  ...run,
  sequence: Number(row.sequence),
  prompt: textOr(row.prompt),
  aspectRatio: textOr(row.aspect_ratio),
  key: keyNameOf(row),
  price: Number(row.price),
})

export const listedEntryOf = (row: Row): ListedEntry => ({ ...ledgerEntryOfRow(row), key: keyNameOf(row) })

export const accountSummaryOf = (row: Row) => ({
  name: String(row.name),
  balance: Number(row.balance),
  banned: isSet(row.banned),
})

export const lostAttemptOf = (row: Row): LostAttempt => ({
  startedAtMs: Number(row.started_at),
  endedAtMs: Number(row.ended_at),
  result: row.result as LostAttempt['result'],
})

/** `at` is a time of the day. */
export const daySpendOf = (row: Row): DaySpend => ({
  day: new Date(Number(row.at)).toISOString().slice(0, 10),
  credits: Number(row.credits),
  runs: Number(row.runs),
})
