/** Cancels an unfinished run, or the selected runs of the list, after a confirmation. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails, type RunSummary } from '../../protocol/console.js'
import { messageOf, request } from '../api.js'
import { Button } from '../components/button.js'
import { ConfirmDialog } from '../components/dialog.js'
import { showToast } from '../components/toast.js'
import { plural } from '../format.js'

const cancel = (id: string): Promise<RunDetails> =>
  request<RunDetails>('POST', CONSOLE_PATHS.cancel, { params: { id } })

export function CancelRun({ run, onDone }: { readonly run: RunDetails; readonly onDone: () => void }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind="danger" onClick={() => setOpen(true)}>
        Cancel run
      </Button>
      {isOpen && (
        <ConfirmDialog
          title="Cancel this run?"
          action="Cancel run"
          cancel="Keep it"
          kind="danger"
          name={`cancel ${run.id}`}
          onClose={() => setOpen(false)}
          onConfirm={async () => {
            await cancel(run.id)
            onDone()
          }}
        >
          <p>
            {run.status === 'queued'
              ? 'It has not started, so its price is refunded.'
              : 'It has started. Its price is refunded only if its model certainly cost nothing.'}
          </p>
        </ConfirmDialog>
      )}
    </>
  )
}

interface CancelRunsProps {
  /** The selected runs. */
  readonly runs: readonly RunSummary[]
  /** Number of unfinished runs in the list. */
  readonly count: number
  readonly onChooseAll: () => void
  readonly onClear: () => void
  readonly onDone: () => void
}

/** Bar above the list while runs are selected. */
export function CancelRuns({ runs, count, onChooseAll, onClear, onDone }: CancelRunsProps) {
  // The selection at the click: the list may draw runs as finished while the dialog is open.
  const [confirmed, setConfirmed] = useState<readonly RunSummary[]>()
  return (
    <>
      {runs.length > 0 && (
        <section class="runs-selection" aria-label="Selection">
          <span role="status">{plural(runs.length, 'run')} selected</span>
          {runs.length < count && (
            <Button size="small" onClick={onChooseAll}>
              {`Select all ${plural(count, 'unfinished run')}`}
            </Button>
          )}
          <Button size="small" onClick={onClear}>
            Clear
          </Button>
          <Button size="small" kind="danger" onClick={() => setConfirmed(runs)}>
            {`Cancel ${plural(runs.length, 'run')}`}
          </Button>
        </section>
      )}
      {confirmed !== undefined && (
        <ConfirmDialog
          title={`Cancel ${plural(confirmed.length, 'run')}?`}
          action="Cancel runs"
          cancel="Keep them"
          kind="danger"
          name="cancel runs"
          onClose={() => setConfirmed(undefined)}
          onConfirm={async () => {
            const { text, hasFailed } = await cancelEach(
              confirmed.map(({ id }) => id),
              cancel,
            )
            showToast(text, hasFailed ? 'bad' : 'good')
            onDone()
          }}
        >
          <p>
            A run that has not started is refunded. A run that has started is refunded only if its model
            certainly cost nothing.
          </p>
        </ConfirmDialog>
      )}
    </>
  )
}

/** Cancels each run on its own, one after the other, and tells the result in one sentence. */
export async function cancelEach(
  ids: readonly string[],
  cancel: (id: string) => Promise<Pick<RunDetails, 'status' | 'is_refunded'>>,
): Promise<{ readonly text: string; readonly hasFailed: boolean }> {
  let canceled = 0
  let refunded = 0
  const failures: unknown[] = []
  for (const id of ids) {
    try {
      const run = await cancel(id)
      if (run.status !== 'canceled') continue
      canceled++
      if (run.is_refunded) refunded++
    } catch (error) {
      failures.push(error)
    }
  }
  const ended = ids.length - canceled - failures.length
  const [first] = failures
  const parts = [
    `Canceled ${canceled === ids.length ? '' : `${canceled} of `}${plural(ids.length, 'run')}`,
    ...(refunded > 0 ? [`${refunded} refunded`] : []),
    ...(ended > 0 ? [`${ended} had ended`] : []),
    ...(failures.length > 0 ? [`${failures.length} failed: ${messageOf(first)}`] : []),
  ]
  const text = parts.join(', ')
  return { text: /[.!?]$/.test(text) ? text : `${text}.`, hasFailed: failures.length > 0 }
}
