import { country } from './country.js';

/** Oceania. */
export const OCEANIAN_COUNTRIES = [
  country('AU', 'Australia', 'standard', ['oceania'], { '5G': ['Telstra', 'Optus', 'Vodafone'] }),
  country('CK', 'Cook Islands', 'remote', ['oceania'], { '4G': ['Vodafone'] }),
  country('FJ', 'Fiji', 'premium', ['oceania'], { '5G': ['Vodafone'], '4G': ['Digicel'] }),
  country('GU', 'Guam', 'premium', ['oceania'], { '5G': ['GTA', 'Docomo Pacific'] }),
  country('NC', 'New Caledonia', 'remote', ['oceania'], { '4G': ['Mobilis'] }),
  country('NR', 'Nauru', 'remote', ['oceania'], { '4G': ['Digicel'] }),
  country('NZ', 'New Zealand', 'standard', ['oceania'], { '5G': ['One NZ', 'Spark', '2degrees'] }),
  country('PF', 'French Polynesia', 'remote', ['oceania'], { '5G': ['Vini'], '4G': ['Vodafone'] }),
  country('PG', 'Papua New Guinea', 'remote', ['oceania'], { '4G': ['Digicel', 'Bmobile'] }),
  country('SB', 'Solomon Islands', 'remote', ['oceania'], { '4G': ['Our Telekom', 'bmobile'] }),
  country('TO', 'Tonga', 'remote', ['oceania'], { '4G': ['Digicel', 'U-Call'] }),
  country('VU', 'Vanuatu', 'remote', ['oceania'], { '4G': ['Vodafone', 'Digicel'] }),
  country('WS', 'Samoa', 'remote', ['oceania'], { '4G': ['Vodafone', 'Digicel'] }),
];
