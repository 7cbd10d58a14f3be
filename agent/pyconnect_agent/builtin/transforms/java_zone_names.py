"""Names of time zones that `java.text.SimpleDateFormat` reads for the letters z and Z.

The names are those of Java 17 in English, in Java's order: the first zone that has a name counts,
so that IST is Israel's. A name means the standard or the daylight saving offset of its zone in
every season.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

_WINTER = datetime(2024, 1, 1)  # noqa: DTZ001  a local time


@dataclass(frozen=True, slots=True)
class ZoneName:
    """A name of an IANA zone; `saving`: of its daylight saving time, None if the season decides."""

    zone: str
    saving: timedelta | None

    def offset(self, local: datetime) -> timedelta:
        """Return the offset from UTC at a local time, which has no zone."""
        # Java has no local mean times: before 1900 the offset is today's.
        known = local if local.year >= 1900 else _WINTER
        at = known.replace(tzinfo=ZoneInfo(self.zone))
        offset = at.utcoffset() or timedelta()
        if self.saving is None:
            return offset
        return offset - (at.dst() or timedelta()) + self.saving


@cache
def zone_names() -> Mapping[str, ZoneName]:
    """Return all names in capitals; if one begins with another, the first of them counts."""
    found = {}
    for line in _TABLE.split("\n"):
        place, *names = line.split("|")
        zone = place.removesuffix("*")
        hours = 0.5 if zone == "Australia/Lord_Howe" else 1
        summer = timedelta(hours=hours) if zone != place else None
        for index, name in enumerate(names):
            winter = None if name.startswith("=") else timedelta()
            if name:
                saving = winter if index < 2 else summer
                found[name.removeprefix("=").upper()] = ZoneName(zone, saving)
    return found


_TABLE = """\
Etc/UTC|=Coordinated Universal Time|=UTC
America/Los_Angeles*|Pacific Standard Time|PST|Pacific Daylight Time|PDT
America/Denver*|Mountain Standard Time|MST|Mountain Daylight Time|MDT
America/Chicago*|Central Standard Time|CST|Central Daylight Time|CDT
America/New_York*|Eastern Standard Time|EST|Eastern Daylight Time|EDT
Pacific/Honolulu|Hawaii-Aleutian Standard Time|HST|Hawaii-Aleutian Daylight Time|HDT
America/Anchorage*|Alaska Standard Time|AKST|Alaska Daylight Time|AKDT
America/Halifax*|Atlantic Standard Time|AST|Atlantic Daylight Time|ADT
America/St_Johns*|Newfoundland Standard Time|NST|Newfoundland Daylight Time|NDT
Europe/Paris*|Central European Standard Time|CET|Central European Summer Time|CEST
Etc/UTC|=Greenwich Mean Time
Asia/Jerusalem*|Israel Standard Time|IST|Israel Daylight Time|IDT
Asia/Tokyo|Japan Standard Time|JST|Japan Daylight Time|JDT
Europe/Bucharest*|Eastern European Standard Time|EET|Eastern European Summer Time|EEST
Asia/Shanghai|China Standard Time||China Daylight Time
Australia/Darwin|Australian Central Standard Time|ACST|Australian Central Daylight Time|ACDT
Australia/Sydney*|Australian Eastern Standard Time|AEST|Australian Eastern Daylight Time|AEDT
America/Sao_Paulo|Brasilia Standard Time|BRT|Brasilia Summer Time|BRST
Asia/Dhaka|Bangladesh Standard Time|BDT|Bangladesh Summer Time|BDST
Africa/Harare|Central Africa Time|CAT|Central African Summer Time|CAST
Africa/Addis_Ababa|East Africa Time|EAT|Eastern African Summer Time|EAST
Pacific/Apia|Apia Standard Time|WSST|Apia Daylight Time|WSDT
Asia/Yerevan|Armenia Standard Time|AMT|Armenia Summer Time|AMST
Pacific/Auckland*|New Zealand Standard Time|NZST|New Zealand Daylight Time|NZDT
Asia/Karachi|Pakistan Standard Time|PKT|Pakistan Summer Time|PKST
Pacific/Guadalcanal|Solomon Islands Time|SBT|Solomon Is. Summer Time|SBST
Asia/Aden|Arabian Standard Time||Arabian Daylight Time
Asia/Baku|Azerbaijan Standard Time|AZT|Azerbaijan Summer Time|AZST
Asia/Dili|East Timor Time|TLT|Timor-Leste Summer Time|TLST
Asia/Hovd|Hovd Standard Time|HOVT|Hovd Summer Time|HOVST
Asia/Omsk|Omsk Standard Time|OMST|Omsk Summer Time|OMSST
Asia/Oral|West Kazakhstan Time|ORAT|Oral Summer Time|ORAST
Asia/Aqtau||AQTT|Aqtau Summer Time|AQTST
Asia/Chita|Yakutsk Standard Time|YAKT|Yakutsk Summer Time|YAKST
Asia/Dubai|Gulf Standard Time|GST|Gulf Daylight Time|GDT
Asia/Kabul|Afghanistan Time|AFT|Afghanistan Summer Time|AFST
Asia/Seoul|Korean Standard Time|KST|Korean Daylight Time|KDT
Asia/Almaty|East Kazakhstan Time|ALMT|Alma-Ata Summer Time|ALMST
Asia/Anadyr|Anadyr Standard Time|ANAT|Anadyr Summer Time|ANAST
Asia/Aqtobe|||Aqtobe Summer Time
Asia/Atyrau|||Atyrau Daylight Time
Asia/Brunei|Brunei Darussalam Time|BNT|Brunei Summer Time|BNST
Asia/Manila|Philippine Standard Time||Philippine Summer Time
Asia/Ho_Chi_Minh|Indochina Time|ICT|Indochina Summer Time|ICST
Asia/Taipei|Taipei Standard Time||Taipei Daylight Time
Asia/Tehran|Iran Standard Time|IRST|Iran Daylight Time|IRDT
Indian/Mahe|Seychelles Time|SCT|Seychelles Summer Time|SCST
Pacific/Chuuk|Chuuk Time|CHUT|Chuuk Summer Time|CHUST
Africa/Accra|||Ghana Summer Time|GHST
Africa/Lagos|West Africa Standard Time|WAT|West Africa Summer Time|WAST
America/Adak*||HAST||HADT
America/Lima|Peru Standard Time|PET|Peru Summer Time|PEST
Asia/Bishkek|Kyrgyzstan Time|KGT|Kirgizstan Summer Time|KGST
Asia/Colombo|India Standard Time||India Daylight Time
Asia/Irkutsk|Irkutsk Standard Time|IRKT|Irkutsk Summer Time|IRKST
Asia/Jakarta|Western Indonesia Time|WIB|West Indonesia Summer Time|WIST
Asia/Kuching|Malaysia Time|MYT|Malaysia Summer Time|MYST
Asia/Magadan|Magadan Standard Time|MAGT|Magadan Summer Time|MAGST
Asia/Yangon|Myanmar Time|MMT|Myanmar Summer Time|MMST
Asia/Tbilisi|Georgia Standard Time|GET|Georgia Summer Time|GEST
Asia/Thimphu|Bhutan Time|BTT|Bhutan Summer Time|BTST
Europe/Minsk|Moscow Standard Time|MSK|Moscow Summer Time|MSD
Indian/Cocos|Cocos Islands Time|CCT|Cocos Islands Summer Time|CCST
Pacific/Fiji|Fiji Standard Time|FJT|Fiji Summer Time|FJST
Pacific/Guam|Chamorro Standard Time|ChST|Chamorro Daylight Time|ChDT
Pacific/Niue|Niue Time|NUT|Niue Summer Time|NUST
Pacific/Wake|Wake Island Time|WAKT|Wake Summer Time|WAKST
Etc/GMT+8|=Pitcairn Time
Etc/GMT+9|=Gambier Time
Africa/Maseru|South Africa Standard Time|=SAST|South Africa Summer Time
America/Jujuy|Argentina Standard Time|ART|Argentina Summer Time|ARST
Asia/Ashgabat|Turkmenistan Standard Time|TMT|Turkmenistan Summer Time|TMST
Asia/Dushanbe|Tajikistan Time|TJT|Tajikistan Summer Time|TJST
Asia/Jayapura|Eastern Indonesia Time|WIT|East Indonesia Summer Time|EIST
Asia/Kathmandu|Nepal Time|NPT|Nepal Summer Time|NPST
Asia/Makassar|Central Indonesia Time|WITA|Central Indonesia Summer Time|CIST
Asia/Qostanay||QOST|Kostanay Summer Time|QOSST
Asia/Sakhalin|Sakhalin Standard Time|SAKT|Sakhalin Summer Time|SAKST
Asia/Tashkent|Uzbekistan Standard Time|UZT|Uzbekistan Summer Time|UZST
Asia/Ust-Nera|Vladivostok Standard Time|VLAT|Vladivostok Summer Time|VLAST
Europe/London*|||Irish Standard Time
Europe/Jersey*|||British Summer Time|BST
Europe/Lisbon*|Western European Standard Time|WET|Western European Summer Time|WEST
Europe/Samara|Samara Standard Time|SAMT|Samara Summer Time|SAMST
Indian/Chagos|Indian Ocean Time|IOT|Indian Ocean Territory Summer Time|IOST
Pacific/Efate|Vanuatu Standard Time|VUT|Vanuatu Summer Time|VUST
Pacific/Nauru|Nauru Time|NRT|Nauru Summer Time|NRST
Pacific/Palau|Palau Time|PWT|Palau Summer Time|PWST
America/Bogota|Colombia Standard Time|COT|Colombia Summer Time|COST
America/Cuiaba|Amazon Standard Time||Amazon Summer Time
America/Guyana|Guyana Time|GYT|Guyana Summer Time|GYST
America/Havana*|Cuba Standard Time||Cuba Daylight Time
America/La_Paz|Bolivia Time|BOT|Bolivia Summer Time|BOST
Asia/Hong_Kong|Hong Kong Standard Time|HKT|Hong Kong Summer Time|HKST
Asia/Kamchatka|Petropavlovsk-Kamchatski Standard Time|PETT
Asia/Kamchatka|||Petropavlovsk-Kamchatski Summer Time|PETST
Asia/Qyzylorda||QYZT|Qyzylorda Summer Time|QYZST
Asia/Singapore|Singapore Standard Time|SGT|Singapore Summer Time|SGST
Indian/Reunion|Réunion Time|RET|Reunion Summer Time|REST
Pacific/Easter*|Easter Island Standard Time||Easter Island Summer Time|EASST
Pacific/Kosrae|Kosrae Time|KOST|Kosrae Summer Time|KOSST
Pacific/Majuro|Marshall Islands Time|MHT|Marshall Islands Summer Time|MHST
Pacific/Midway|Samoa Standard Time|SST|Samoa Daylight Time|SDT
Pacific/Noumea|New Caledonia Standard Time|NCT|New Caledonia Summer Time|NCST
Pacific/Pohnpei|Ponape Time|PONT|Pohnpei Summer Time|PONST
Pacific/Tahiti|Tahiti Time|TAHT|Tahiti Summer Time|TAHST
Pacific/Tarawa|Gilbert Islands Time|GILT|Gilbert Is. Summer Time|GILST
Pacific/Wallis|Wallis & Futuna Time|WFT|Wallis & Futuna Summer Time|WFST
Africa/Windhoek|||Western African Time
America/Caracas|Venezuela Time|VET|Venezuela Summer Time|VEST
America/Cayenne|French Guiana Time|GFT|French Guiana Summer Time|GFST
America/Nuuk*|West Greenland Standard Time|WGT|West Greenland Summer Time|WGST
America/Noronha|Fernando de Noronha Standard Time|FNT|Fernando de Noronha Summer Time|FNST
Asia/Choibalsan|Ulaanbaatar Standard Time|CHOT|Ulaanbaatar Summer Time|CHOST
Atlantic/Azores*|Azores Standard Time|AZOT|Azores Summer Time|AZOST
Australia/Eucla|Australian Central Western Standard Time|ACWST
Australia/Eucla|||Australian Central Western Daylight Time|ACWDT
Australia/Perth|Australian Western Standard Time|AWST|Australian Western Daylight Time|AWDT
Indian/Maldives|Maldives Time|MVT|Maldives Summer Time|MVST
Pacific/Chatham*|Chatham Standard Time|CHAST|Chatham Daylight Time|CHADT
Pacific/Fakaofo|Tokelau Time|TKT|Tokelau Summer Time|TKST
Pacific/Gambier||GAMT|Gambier Summer Time|GAMST
Pacific/Norfolk*|Norfolk Island Standard Time|NFT|Norfolk Island Daylight Time|NFST
America/Asuncion|Paraguay Standard Time|PYT|Paraguay Summer Time|PYST
America/Eirunepe|Acre Standard Time|ACT|Acre Summer Time
America/Mazatlan|Mexican Pacific Standard Time||Mexican Pacific Daylight Time
America/Miquelon*|St. Pierre & Miquelon Standard Time|PMST|St. Pierre & Miquelon Daylight Time|PMDT
America/Santiago*|Chile Standard Time|CLT|Chile Summer Time|CLST
Antarctica/Casey|Casey Time
Antarctica/Davis|Davis Time|DAVT|Davis Summer Time|DAVST
Antarctica/Syowa|Syowa Time|SYOT|Syowa Summer Time|SYOST
Asia/Krasnoyarsk|Krasnoyarsk Standard Time|KRAT|Krasnoyarsk Summer Time|KRAST
Asia/Novosibirsk|Novosibirsk Standard Time|NOVT|Novosibirsk Summer Time|NOVST
Asia/Ulaanbaatar||ULAT||ULAST
Atlantic/Stanley|Falkland Islands Standard Time|FKT|Falkland Islands Summer Time|FKST
Europe/Volgograd|Volgograd Standard Time||Volgograd Summer Time
Indian/Christmas|Christmas Island Time|CXT|Christmas Island Summer Time|CXST
Indian/Kerguelen|French Southern & Antarctic Time|TFT
Indian/Kerguelen|||French Southern & Antarctic Lands Summer Time|TFST
Indian/Mauritius|Mauritius Standard Time|MUT|Mauritius Summer Time|MUST
Pacific/Funafuti|Tuvalu Time|TVT|Tuvalu Summer Time|TVST
Pacific/Pitcairn|||Pitcairn Daylight Time
America/Guayaquil|Ecuador Time|ECT|Ecuador Summer Time|ECST
Antarctica/Mawson|Mawson Time|MAWT|Mawson Summer Time|MAWST
Antarctica/Vostok|Vostok Time|VOST|Vostok Summer Time|VOSST
Pacific/Kanton|Phoenix Islands Time|PHOT|Phoenix Is. Summer Time|PHOST
Pacific/Galapagos|Galapagos Time|GALT|Galapagos Summer Time|GALST
Pacific/Marquesas|Marquesas Time|MART|Marquesas Summer Time|MARST
Pacific/Rarotonga|Cook Islands Standard Time|CKT|Cook Islands Half Summer Time|CKHST
Pacific/Tongatapu|Tonga Standard Time|TOT|Tonga Summer Time|TOST
America/Montevideo|Uruguay Standard Time|UYT|Uruguay Summer Time|UYST
America/Paramaribo|Suriname Time|SRT|Suriname Summer Time|SRST
Antarctica/Rothera|Rothera Time|ROTT|Rothera Summer Time|ROTST
Asia/Yekaterinburg|Yekaterinburg Standard Time|YEKT|Yekaterinburg Summer Time|YEKST
Pacific/Kiritimati|Line Islands Time|LINT|Line Is. Summer Time|LINST
Atlantic/Cape_Verde|Cape Verde Standard Time|CVT|Cape Verde Summer Time|CVST
Australia/Lord_Howe*|Lord Howe Standard Time|LHST|Lord Howe Daylight Time|LHDT
America/Santa_Isabel*|Northwest Mexico Standard Time||Northwest Mexico Daylight Time
America/Scoresbysund*|East Greenland Standard Time|EGT|East Greenland Summer Time|EGST
Pacific/Port_Moresby|Papua New Guinea Time|PGT|Papua New Guinea Summer Time|PGST
Atlantic/South_Georgia|South Georgia Time||South Georgia Daylight Time
Antarctica/DumontDUrville|Dumont-d\u2019Urville Time|DDUT|Dumont-d'Urville Summer Time|DDUST
Asia/Kashgar|Xinjiang Standard Time|XJT|Xinjiang Daylight Time|XJDT
CET*|Central European Time
Europe/Istanbul|Turkey Time|TRT|Turkey Summer Time|TRST
Asia/Tomsk|Tomsk Standard Time||Tomsk Daylight Time
Pacific/Honolulu|=Hawaii Standard Time
Europe/Saratov|=Saratov Standard Time
America/Argentina/Buenos_Aires|Argentine Time||Argentine Summer Time
Pacific/Bougainville|Bougainville Standard Time||Bougainville Daylight Time
Asia/Barnaul|Barnaul Standard Time||Barnaul Daylight Time
MET*|Middle Europe Time|MET|Middle Europe Summer Time|MEST
Africa/El_Aaiun|Western European Time
Antarctica/Palmer|Chile Time
America/Punta_Arenas|=Punta Arenas Standard Time
Europe/Kirov|||Moscow Daylight Time
Pacific/Kanton|Kanton Standard Time||Kanton Daylight Time
Europe/Astrakhan|=Astrakhan Standard Time
Asia/Famagusta*|Eastern European Time
Europe/Ulyanovsk|=Ulyanovsk Standard Time
Asia/Srednekolymsk|Srednekolymsk Time|SRET|Srednekolymsk Daylight Time|SREDT"""
"""Zones with their long and short names in winter and in summer.

`*`: the zone has daylight saving time today. `=`: the name is that of summer as well.
"""
