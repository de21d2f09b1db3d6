import { formatNumber } from '../format.js'

export interface MeterProps {
  readonly value: number
  /** Null: no limit. */
  readonly max: number | null
}

/** `20 / 100` with a thin bar below; without a limit only the number. */
export function Meter({ value, max }: MeterProps) {
  if (max === null || max === undefined) return <span class="number">{formatNumber(value)}</span>
  const share = max <= 0 ? 1 : Math.min(1, Math.max(0, value / max))
  const tone = share >= 1 ? 'full' : share >= 0.8 ? 'near' : 'low'
  return (
    <span class="meter">
      <span class="number">
        {formatNumber(value)} <span class="muted">/ {formatNumber(max)}</span>
      </span>
      <span class={`meter-bar meter-${tone}`} aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  )
}
