import type { LocalStatus } from '../../protocol/run-state.js'
import { Badge, type Tone } from '../components/notice.js'

const TONES: Readonly<Record<LocalStatus, Tone>> = {
  queued: 'neutral',
  processing: 'accent',
  succeeded: 'good',
  failed: 'bad',
}

/** In the words of the API. */
export function RunStatus({ status }: { readonly status: LocalStatus }) {
  return (
    <Badge tone={TONES[status] ?? 'neutral'}>
      <span class={`status-dot status-${status}`} aria-hidden="true" />
      {status}
    </Badge>
  )
}
